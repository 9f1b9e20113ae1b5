"""Every public name of the package `attune` is documented, and has a type."""

import ast
import importlib
import inspect
import sys
import unittest

from rank import PACKAGE

sys.path.insert(0, str(PACKAGE))

import attune  # noqa: E402

FILES = [path for path in sorted((PACKAGE / "attune").glob("*.py")) if not path.name.startswith("_")]
# Those of a Trainer's callbacks, which Lightning and Transformers document.
INHERITED = "on_"


def undocumented(node, prefix):
    """The public functions, classes and methods below a node of a module that have no docstring."""
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and not each.name.startswith(("_", INHERITED)):
            if not ast.get_docstring(each):
                yield prefix + each.name
            if isinstance(each, ast.ClassDef):
                yield from undocumented(each, f"{prefix}{each.name}.")


class Names(unittest.TestCase):
    def test_functions_and_classes_of_each_module_have_docstrings(self):
        self.assertIn("client.py", [path.name for path in FILES])
        for path in FILES:
            module = ast.parse(path.read_text())
            self.assertTrue(ast.get_docstring(module), path)
            self.assertEqual(list(undocumented(module, f"{path.stem}.")), [])

    def test_names_that_modules_export_have_docstrings(self):
        with_docstring = []
        for module in map(importlib.import_module, ("attune", "attune.client")):
            for name in set(module.__all__) - set(attune.PUBLIC):
                value = getattr(module, name)
                with_docstring.append(name)
                self.assertTrue(vars(value).get("__doc__") if isinstance(value, type) else value.__doc__, name)
                for method, function in vars(value).items() if isinstance(value, type) else ():
                    if not method.startswith("_"):
                        self.assertTrue(inspect.getdoc(function), f"{name}.{method}")
        self.assertIn("Checkpoint", with_docstring)

    def test_attributes_are_documented_and_have_types(self):
        self.assertEqual(list(attune.PUBLIC), [name for name in attune.__annotations__ if name in attune.__all__])
        for name in attune.PUBLIC:
            self.assertIn(f"`{name}`", attune.__doc__)


if __name__ == "__main__":
    unittest.main()
