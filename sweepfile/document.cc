#include "sweepfile/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "json/parse.h"
#include "sweepfile/text.h"

namespace attune::sweepfile {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Thrown inside yaml-cpp to stop reading; caught in ReadDocument.
struct Refused {
  Place place;
  Mark mark;
  std::string message;
};

// The size of a node with all its descendants.
struct Size {
  size_t nodes = 0;
  size_t text_bytes = 0;  // of its keys and scalars
};

void Count(const Node& node, Size& size) {
  ++size.nodes;
  size.text_bytes += node.text.size();
  for (const Node& item : node.items) Count(item, size);
  for (const MapEntry& entry : node.entries) {
    ++size.nodes;
    size.text_bytes += entry.key.size();
    Count(entry.value, size);
  }
}

size_t Depth(const Node& node) {
  size_t deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, Depth(item));
  for (const MapEntry& entry : node.entries) deepest = std::max(deepest, Depth(entry.value));
  const bool nests = node.kind == Node::Kind::kList || node.kind == Node::Kind::kMap;
  return deepest + (nests ? 1 : 0);
}

// Builds the tree from yaml-cpp's events. The tree of yaml-cpp is not used, because it replaces
// duplicate keys silently and has no limits.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(Lines& lines, Faults& faults) : lines_(lines), faults_(faults) {}

  std::optional<Node> TakeRoot() { return std::exchange(root_, std::nullopt); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    FinishNew({.kind = Node::Kind::kNull, .mark = ToMark(mark)}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node{.kind = Node::Kind::kScalar, .text = value, .mark = ToMark(mark)};
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!node.quoted) CheckTag(tag, "?", node.mark);
    FinishNew(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      Refuse(ToMark(mark), "the alias is inside the value that it refers to; write the value out");
    Take(found->second, ToMark(mark));
    if (stack_.size() + Depth(found->second) > kMaxDepth) RefuseDepth(ToMark(mark));
    Finish(found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(tag, "tag:yaml.org,2002:seq", ToMark(mark));
    Open({.kind = Node::Kind::kList, .mark = ToMark(mark)}, anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(tag, "tag:yaml.org,2002:map", ToMark(mark));
    Open({.kind = Node::Kind::kMap, .mark = ToMark(mark)}, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::string key;
    Mark key_mark;
    std::map<std::string, int> lines;  // the line of each key
  };

  [[noreturn]] void Refuse(Mark mark, std::string message) const {
    throw Refused{CurrentPlace(), mark, std::move(message)};
  }
  [[noreturn]] void RefuseDepth(Mark mark) const {
    Refuse(mark, "lists and maps are nested too deeply; at most " + std::to_string(kMaxDepth) +
                     " levels are allowed");
  }

  Mark ToMark(const YAML::Mark& mark) { return lines_.AtByte(mark.line, mark.column); }

  Place CurrentPlace() const {
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
    if (faults_.full()) return faults_.AddUnlisted();
    faults_.Add(CurrentPlace(), mark, "the YAML tag " + tag + " is not supported; remove it");
  }

  void Open(Node node, YAML::anchor_t anchor) {
    if (stack_.size() >= kMaxDepth) RefuseDepth(node.mark);
    stack_.push_back({.node = std::move(node), .anchor = anchor});
  }

  void Close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    Keep(frame.node, frame.anchor);
    Finish(std::move(frame.node));
  }

  // Adds the size of a copy of the node to the size of the tree.
  void Take(const Node& node, Mark mark) {
    Count(node, size_);
    if (size_.nodes > kMaxNodes) Refuse(mark, "more than " + std::to_string(kMaxNodes) + " values");
    if (size_.text_bytes > kMaxTextBytes)
      Refuse(mark, "more than " + std::to_string(kMaxTextBytes) +
                       " bytes after aliases are replaced by their values");
  }

  // Keeps the node for aliases of its anchor.
  void Keep(const Node& node, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    Take(node, node.mark);
    anchors_.insert_or_assign(anchor, node);
  }

  void FinishNew(Node node, YAML::anchor_t anchor) {
    Take(node, node.mark);
    Keep(node, anchor);
    Finish(std::move(node));
  }

  // The node is complete: it becomes a key, a value, an item or the root.
  void Finish(Node node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = stack_.back();
    if (parent.node.kind == Node::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind != Node::Kind::kScalar)
        Refuse(node.mark, "a key must be text, not a list or a map");
      if (node.text.size() > kMaxKeyBytes)
        Refuse(node.mark,
               "a key is longer than " + std::to_string(kMaxKeyBytes) + " bytes; shorten it");
      parent.has_key = true;
      parent.key = std::move(node.text);
      parent.key_mark = node.mark;
    } else {
      AddEntry(parent, std::move(node));
    }
  }

  void AddEntry(Frame& parent, Node value) {
    const auto [first, is_new] = parent.lines.emplace(parent.key, parent.key_mark.line);
    if (is_new) {
      parent.node.entries.push_back({std::move(parent.key), parent.key_mark, std::move(value)});
    } else if (faults_.full()) {
      faults_.AddUnlisted();
    } else {
      faults_.Add(
          CurrentPlace(), parent.key_mark,
          "this key is already in line " + std::to_string(first->second) + "; remove one of them");
    }
    parent.has_key = false;
  }

  Lines& lines_;
  Faults& faults_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  Size size_;  // of the tree and the anchors
  std::optional<Node> root_;
};

Document ReadYaml(std::string_view text, Lines& lines) {
  Document document;
  Faults faults(document.faults);
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(lines, faults);
  YAML::Parser parser(stream);
  if (!parser.HandleNextDocument(builder)) return document;
  document.root = builder.TakeRoot();
  if (parser.HandleNextDocument(builder)) {
    const auto second = builder.TakeRoot();
    faults.Add({}, second ? second->mark : Mark{},
               "a second YAML document begins here; write each sweep to its own file");
  }
  document.unlisted = faults.unlisted();
  return document;
}

// A document that could not be read to its end, with only this fault. Earlier faults may be
// consequences of it.
Document Unreadable(const Place& place, Mark mark, std::string message) {
  return {.root = std::nullopt, .faults = {MakeFault(place, mark, std::move(message))}};
}

// yaml-cpp keeps all tokens of a list or map in brackets in memory, because the whole may be a key.
// A list has three tokens for each value; a map has seven for each key with its value.
constexpr size_t kMaxTokens = 7 * kMaxNodes / 2;

size_t TokensAtMost(std::string_view text) {
  size_t halves = 0;  // a quoted text has two quotes
  for (const char c : text) {
    if (c == ',' || c == '[' || c == '{') halves += 6;  // with the key and the value that follow
    if (c == ':' || c == '?') halves += 4;              // with the value that follows
    if (c == ']' || c == '}' || c == '&' || c == '*' || c == '!') halves += 2;
    if (c == '"' || c == '\'') ++halves;
  }
  return halves / 2;
}

// Whether the indentation of a line (from 0) has a tab. Always false for JSON.
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
  if (text.size() > kMaxFileBytes)
    return Unreadable({}, {},
                      "the file has " + std::to_string(text.size()) + " bytes; at most " +
                          std::to_string(kMaxFileBytes) + " are allowed");
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (const auto fault = CheckText(text))
    return Unreadable({}, Lines(text).AtOffset(fault->offset), fault->message);
  if (TokensAtMost(text) > kMaxTokens)
    return Unreadable({}, {},
                      "too many commas, colons, brackets and quotes; a file has at most " +
                          std::to_string(kMaxNodes) + " values");
  std::string joined;
  if (text.find("\\ud") != text.npos || text.find("\\uD") != text.npos) {
    if (nlohmann::json::accept(text)) {
      joined = JoinSurrogates(text);
      text = joined;
    }
  }
  Lines lines(text);
  try {
    return ReadYaml(text, lines);
  } catch (const Refused& refused) {
    return Unreadable(refused.place, refused.mark, refused.message);
  } catch (const YAML::Exception& error) {
    const Mark mark =
        error.mark.is_null() ? Mark{} : lines.AtByte(error.mark.line, error.mark.column);
    const bool tabs = !error.mark.is_null() && IsIndentedByTabs(text, error.mark.line);
    return Unreadable(
        {}, mark, "not YAML: " + error.msg + (tabs ? "; indent with spaces, not with tabs" : ""));
  }
}

}  // namespace attune::sweepfile
