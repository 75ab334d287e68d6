"""A module beside an app, which fails."""


def third(n: int) -> float:
    return 3 / n
