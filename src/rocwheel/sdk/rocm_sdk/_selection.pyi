# Shape of the module in which the selector notes what it chose at install time; absent from the selector wheel.

FAMILIES: list[str]
REASON: str
EXPLANATION: str
