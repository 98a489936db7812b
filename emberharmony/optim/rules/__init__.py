"""The optimizers, such as Adam, and their rules: functions that return a parameter after one step."""
