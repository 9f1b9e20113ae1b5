"""An example that is compiled and run uses each public function of the SDK for C++.

Snippets of the pages count, because readme_test.py checks that the tests compile and run them.
"""

import pathlib
import unittest

from sdk_names import code_of_examples, is_used, public_functions

ROOT = pathlib.Path(__file__).resolve().parents[2]

HEADER = """
namespace attune::inline sdk {
namespace trainable {
void Hidden();
}
// A class.
class Thing : public Base {
 public:
  explicit Thing(int size) : size_(size) {}
  int size() const { return size_; }
  template <typename T>
  std::vector<T> Take(const std::function<void(int)>& take = {}) const;
  // For the SDK only.
  void Internal();
  bool operator==(const Thing&) const = default;
  std::function<void(int)> field;

 private:
  void Secret();
  int size_ = 0;
};
void Free(const Thing& thing);
}
"""


class Names(unittest.TestCase):
    def test_public_functions_of_a_header_are_found(self):
        self.assertEqual(public_functions(HEADER), {("Thing", "size"), ("Thing", "Take"), ("", "Free")})

    def test_a_use_is_a_call_or_an_override(self):
        for code in ("thing.size()", "thing->Take<int>(3)", "Thing::Take(3)", "void Take(int) const override {}"):
            name = "size" if "size" in code else "Take"
            self.assertTrue(is_used("Thing", name, code), code)
        for code in ("Take(3)", "thing.Taken()", "int Take;"):
            self.assertFalse(is_used("Thing", "Take", code), code)
        self.assertTrue(is_used("", "Free", "attune::Free(thing)"))

    def test_examples_use_every_public_function(self):
        code = code_of_examples(ROOT)
        names = set()
        for header in sorted((ROOT / "trainable/include/attune").glob("*.h")):
            names |= public_functions(header.read_text())
        self.assertGreater(len(names), 100)
        unused = sorted("::".join(filter(None, name)) for name in names if not is_used(*name, code))
        self.assertEqual(unused, [], "no example calls these: add them to one, such as examples/tour")


if __name__ == "__main__":
    unittest.main()
