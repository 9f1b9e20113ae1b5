#include "sweepfile/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "json/parse.h"
#include "sweepfile/text.h"

namespace attune::sweepfile {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Ends the reading from inside yaml-cpp; caught in ReadDocument.
struct Refused {
  Place place;
  Mark mark;
  std::string message;
};

size_t CountNodes(const Node& node) {
  size_t nodes = 1;
  for (const Node& item : node.items) nodes += CountNodes(item);
  for (const MapEntry& entry : node.entries) nodes += 1 + CountNodes(entry.value);
  return nodes;
}

size_t Depth(const Node& node) {
  size_t deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, Depth(item));
  for (const MapEntry& entry : node.entries) deepest = std::max(deepest, Depth(entry.value));
  const bool nests = node.kind == Node::Kind::kList || node.kind == Node::Kind::kMap;
  return deepest + (nests ? 1 : 0);
}

// Builds the tree from yaml-cpp's events. Its own tree is not used: it replaces duplicate keys
// silently and knows no limits.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const Lines& lines, std::vector<Fault>& faults) : lines_(lines), faults_(faults) {}

  std::optional<Node> TakeRoot() { return std::exchange(root_, std::nullopt); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Finish({.kind = Node::Kind::kNull, .mark = At(mark)}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node{.kind = Node::Kind::kScalar, .text = value, .mark = At(mark)};
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!node.quoted) CheckTag(tag, "?", node.mark);
    Finish(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Refuse(At(mark), "an alias inside what it stands for");
    nodes_ += CountNodes(found->second) - 1;
    if (stack_.size() + Depth(found->second) > kMaxDepth) RefuseDepth(At(mark));
    Finish(found->second, YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(tag, "tag:yaml.org,2002:seq", At(mark));
    Open({.kind = Node::Kind::kList, .mark = At(mark)}, anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(tag, "tag:yaml.org,2002:map", At(mark));
    Open({.kind = Node::Kind::kMap, .mark = At(mark)}, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::string key;
    Mark key_mark;
    std::set<std::string> keys;
  };

  [[noreturn]] void Refuse(Mark mark, std::string message) const {
    throw Refused{Here(), mark, std::move(message)};
  }
  [[noreturn]] void RefuseDepth(Mark mark) const {
    Refuse(mark, "lists and maps are nested more than " + std::to_string(kMaxDepth) + " deep");
  }

  Mark At(const YAML::Mark& mark) const { return lines_.AtByte(mark.line, mark.column); }

  Place Here() const {
    Place place;
    for (const Frame& frame : stack_) {
      if (frame.node.kind == Node::Kind::kList) {
        place = place.Index(frame.node.items.size());
      } else if (frame.has_key) {
        place = place.Key(frame.key);
      }
    }
    return place;
  }

  void CheckTag(const std::string& tag, std::string_view implied, Mark mark) {
    if (tag.empty() || tag == "?" || tag == "!" || tag == implied) return;
    faults_.push_back(
        MakeFault(Here(), mark, "tags such as " + tag + " mean nothing here; remove it"));
  }

  void Open(Node node, YAML::anchor_t anchor) {
    if (stack_.size() >= kMaxDepth) RefuseDepth(node.mark);
    stack_.push_back({.node = std::move(node), .anchor = anchor});
  }

  void Close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    Finish(std::move(frame.node), frame.anchor);
  }

  // The node is complete: it becomes a key, a value, an item or the root.
  void Finish(Node node, YAML::anchor_t anchor) {
    if (++nodes_ > kMaxNodes) {
      Refuse(node.mark, "more than " + std::to_string(kMaxNodes) + " values");
    }
    if (anchor != YAML::NullAnchor) anchors_.insert_or_assign(anchor, node);
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = stack_.back();
    if (parent.node.kind == Node::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind != Node::Kind::kScalar) Refuse(node.mark, "a key must be text");
      parent.has_key = true;
      parent.key = std::move(node.text);
      parent.key_mark = node.mark;
    } else {
      AddEntry(parent, std::move(node));
    }
  }

  void AddEntry(Frame& parent, Node value) {
    if (!parent.keys.insert(parent.key).second) {
      const MapEntry* first = parent.node.Find(parent.key);
      faults_.push_back(MakeFault(Here(), parent.key_mark,
                                  "this key is already there, in line " +
                                      std::to_string(first->mark.line) + "; remove one of them"));
    } else {
      parent.node.entries.push_back({std::move(parent.key), parent.key_mark, std::move(value)});
    }
    parent.has_key = false;
  }

  const Lines& lines_;
  std::vector<Fault>& faults_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  size_t nodes_ = 0;
  std::optional<Node> root_;
};

void ReadYaml(std::string_view text, const Lines& lines, Document& document) {
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(lines, document.faults);
  YAML::Parser parser(stream);
  if (!parser.HandleNextDocument(builder)) return;
  document.root = builder.TakeRoot();
  if (parser.HandleNextDocument(builder)) {
    const auto second = builder.TakeRoot();
    document.faults.push_back(MakeFault({}, second ? second->mark : Mark{},
                                        "a second document; a sweep file holds one sweep"));
  }
}

// Whether the line, from 0, of a text that is not JSON begins with a tab, or has one among the
// spaces that it begins with.
bool IsIndentedByTabs(std::string_view text, int line) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] == '{' || text[first] == '[') return false;
  for (; line > 0 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find_first_not_of(" \t")).find('\t') != text.npos;
}

}  // namespace

const MapEntry* Node::Find(std::string_view key) const {
  for (const MapEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Fault MakeFault(const Place& place, Mark mark, std::string message, std::string suggestion) {
  return {.path = place.Path(),
          .pointer = place.Pointer(),
          .message = std::move(message),
          .suggestion = std::move(suggestion),
          .line = mark.line,
          .column = mark.column};
}

Mark Locate(const Node& root, const Place& place) {
  const Node* node = &root;
  Mark mark = root.mark;
  for (const Place::Part& part : place.parts()) {
    if (const auto* index = std::get_if<size_t>(&part)) {
      if (*index >= node->items.size()) break;
      node = &node->items[*index];
      mark = node->mark;
    } else {
      const MapEntry* entry = node->Find(std::get<std::string>(part));
      if (entry == nullptr) break;
      node = &entry->value;
      const bool nests = node->kind == Node::Kind::kList || node->kind == Node::Kind::kMap;
      mark = nests || node->kind == Node::Kind::kNull ? entry->mark : node->mark;
    }
  }
  return mark;
}

Document ReadDocument(std::string_view text) {
  Document document;
  if (text.size() > kMaxFileBytes) {
    document.faults.push_back(MakeFault({}, {},
                                        "the file has " + std::to_string(text.size()) +
                                            " bytes; at most " + std::to_string(kMaxFileBytes) +
                                            " are read"));
    return document;
  }
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (const auto fault = CheckText(text)) {
    document.faults.push_back(MakeFault({}, Lines(text).AtOffset(fault->offset), fault->message));
    return document;
  }
  std::string joined;
  if (text.find("\\ud") != text.npos || text.find("\\uD") != text.npos) {
    if (nlohmann::json::accept(text)) {
      joined = JoinSurrogates(text);
      text = joined;
    }
  }
  const Lines lines(text);
  try {
    ReadYaml(text, lines, document);
  } catch (const Refused& refused) {
    document.root.reset();
    document.faults.push_back(MakeFault(refused.place, refused.mark, refused.message));
  } catch (const YAML::Exception& error) {
    document.root.reset();
    const Mark mark =
        error.mark.is_null() ? Mark{} : lines.AtByte(error.mark.line, error.mark.column);
    const bool tabs = !error.mark.is_null() && IsIndentedByTabs(text, error.mark.line);
    document.faults.push_back(MakeFault(
        {}, mark,
        "not YAML: " + error.msg + (tabs ? "; YAML is indented by spaces, never by tabs" : "")));
  }
  return document;
}

}  // namespace attune::sweepfile
