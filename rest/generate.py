#!/usr/bin/env python3
"""Generates code and tables from the REST contract, docs/openapi.yaml.

    generate.py cpp CONTRACT FOLDER     FOLDER/rest/contract.h, contract.cc and openapi.cc: C++ structs and the document
    generate.py ts CONTRACT FILE        TypeScript interfaces for the dashboard
    generate.py python CONTRACT FILE    Python types for type checkers
    generate.py page CONTRACT FILE      writes the tables between the markers of FILE (docs/reference/rest-api.md)
    generate.py page --check CONTRACT FILE    exits with 1 if these tables are out of date

The head of docs/openapi.yaml lists the conventions that this script relies on.
"""

import pathlib
import sys

sys.dont_write_bytecode = True  # builds must not write to the source folder

from client_types import Python, TypeScript
from contract_model import Contract, ContractError
from cpp_types import Cpp
from reference_page import write_page


def write(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(arguments):
    check = "--check" in arguments
    arguments = [each for each in arguments if each != "--check"]
    if len(arguments) != 3 or arguments[0] not in ("cpp", "ts", "python", "page"):
        sys.exit(__doc__)
    output, source, target = arguments
    try:
        contract = Contract(source)
        if output == "cpp":
            cpp = Cpp(contract)
            write(f"{target}/rest/contract.h", cpp.header())
            write(f"{target}/rest/contract.cc", cpp.source())
            write(f"{target}/rest/openapi.cc", cpp.document())
        elif output == "page":
            write_page(contract, target, check)
        else:
            language = {"ts": TypeScript, "python": Python}[output]
            write(target, language(contract).text())
    except ContractError as error:
        sys.exit(f"generate.py: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
