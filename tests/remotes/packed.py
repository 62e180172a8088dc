"""Archives as others make them."""

import io
import tarfile
import zipfile


def zipped(files, modes=None):
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (modes or {}).get(name, 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return box.getvalue()


def tarred(files, *members, packed=True, modes=None):
    box = io.BytesIO()
    with tarfile.open(fileobj=box, mode="w:gz" if packed else "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            member.size = len(data)
            member.mode = (modes or {}).get(name, 0o644)
            archive.addfile(member, io.BytesIO(data))
        for member in members:
            archive.addfile(member)
    return box.getvalue()


def special(name, kind, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member
