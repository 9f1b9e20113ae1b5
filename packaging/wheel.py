"""Writes wheels of the Python package: https://packaging.python.org/en/latest/specifications/

The metadata comes from `clients/python/pyproject.toml`, as in `pip install clients/python`.
"""

import base64
import hashlib
import pathlib
import tomllib
import zipfile

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "clients/python"
_DATE = (1980, 1, 1, 0, 0, 0)  # date of all files, so that equal files give equal wheels


def project():
    return tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]


def metadata(about):
    """The text of METADATA, from the table [project]."""
    lines = ["Metadata-Version: 2.4", f"Name: {about['name']}", f"Version: {about['version']}",
             f"Summary: {about['description']}", f"Keywords: {','.join(about['keywords'])}",
             *(f"Author: {author['name']}" for author in about["authors"]),
             f"License-Expression: {about['license']}",
             *(f"License-File: {name}" for name in about["license-files"]),
             *(f"Classifier: {classifier}" for classifier in about["classifiers"]),
             *(f"Project-URL: {name}, {url}" for name, url in about.get("urls", {}).items()),
             *(line for extra, needed in about["optional-dependencies"].items()
               for line in (f"Provides-Extra: {extra}",
                            *(f'Requires-Dist: {each}; extra == "{extra}"' for each in needed))),
             f"Requires-Python: {about['requires-python']}", "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (PACKAGE / about["readme"]).read_text()


def write(folder, platforms, files):
    """Writes a wheel with the Python package and `files`: {path in the environment: (content, whether it is a program)}.

    Programs in bin/ are installed as scripts. Without platforms, the wheel is for all systems.
    """
    about = project()
    stem = f"{about['name'].replace('-', '_')}-{about['version']}"
    info, data = f"{stem}.dist-info", f"{stem}.data"
    packed = {f"attune/{source.name}": (source.read_bytes(), False)
              for source in sorted((PACKAGE / "attune").iterdir()) if source.suffix in (".py", ".pyi", ".typed")}
    for path, file in files.items():
        packed[f"{data}/scripts/{path[4:]}" if path.startswith("bin/") else f"{data}/data/{path}"] = file
    for name in about["license-files"]:
        packed[f"{info}/licenses/{name}"] = (PACKAGE / name).read_bytes(), False
    packed[f"{info}/METADATA"] = metadata(about).encode(), False
    what = "Wheel-Version: 1.0\nGenerator: attune\n" + f"Root-Is-Purelib: {'false' if platforms else 'true'}\n"
    what += "".join(f"Tag: py3-none-{platform}\n" for platform in platforms or ["any"])
    packed[f"{info}/WHEEL"] = what.encode(), False
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, (content, _) in packed.items())
    packed[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode(), False
    with zipfile.ZipFile(folder / f"{stem}-py3-none-{'.'.join(platforms or ['any'])}.whl", "w") as wheel:
        for path, (content, is_program) in packed.items():
            member = zipfile.ZipInfo(path, _DATE)
            member.external_attr = (0o100755 if is_program else 0o100644) << 16
            wheel.writestr(member, content, zipfile.ZIP_DEFLATED)


def _digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
