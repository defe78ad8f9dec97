"""What is wrong with finished files and how to mend it: loader model, rules, findings, repair."""
