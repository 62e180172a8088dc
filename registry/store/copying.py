"""placeholder"""


def copy_to_file(url: object, path: str, target: str, *, overwrite: bool) -> None:
    raise NotImplementedError
