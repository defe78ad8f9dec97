"""The main job from end to end, on the sample SDK that ships with rocwheel."""
