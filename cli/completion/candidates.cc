#include "cli/completion/candidates.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/completion/tree.h"

namespace attune::cli {
namespace {

using Kind = Candidates::Kind;

// A command line, read up to the word at the cursor.
struct Place {
  const CLI::App* verb = nullptr;
  const CLI::Option* awaited = nullptr;  // the option whose value comes next
  bool only_positionals = false;         // after --
  size_t positionals = 0;                // that have been given
  std::vector<const CLI::Option*> given;
  ServerChoice server;
};

void NoteValue(const CLI::Option& option, const std::string& value, Place& place) {
  if (option.check_lname("server")) place.server.server = value;
  if (option.check_lname("data-dir")) place.server.data_dir = value;
  if (option.check_lname("token-file")) place.server.token_file = value;
}

void ReadOption(const std::string& word, Place& place) {
  const bool is_long = word.starts_with("--");
  const size_t name_end = is_long ? std::min(word.find('='), word.size()) : 2;
  const CLI::Option* const option = place.verb->get_option_no_throw(word.substr(0, name_end));
  if (option == nullptr) return;
  place.given.push_back(option);
  if (!TakesValue(*option)) return;
  if (name_end == word.size()) {
    place.awaited = option;
  } else {
    NoteValue(*option, word.substr(name_end + (is_long ? 1 : 0)), place);
  }
}

void ReadWord(const std::string& word, Place& place) {
  if (place.awaited != nullptr) {
    NoteValue(*place.awaited, word, place);
    place.awaited = nullptr;
  } else if (place.only_positionals) {
    ++place.positionals;
  } else if (word == "--") {
    place.only_positionals = true;
  } else if (word.size() > 1 && word.starts_with('-')) {
    ReadOption(word, place);
  } else if (const CLI::App* verb = FindVerb(*place.verb, word);
             verb != nullptr && place.positionals == 0) {
    place.verb = verb;
    place.given.clear();
  } else {
    ++place.positionals;
  }
}

// Whether one of the words in capitals of `text` is `name`: MODEL|FILE has FILE.
bool Names(const std::string& text, std::string_view name) {
  std::string word;
  for (const char c : text + ' ') {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (word == name) {
      return true;
    } else {
      word.clear();
    }
  }
  return false;
}

Candidates ValuesFor(const CLI::Option& option, const Place& place, const ListSweeps& list_sweeps) {
  Candidates found;
  for (std::string& value : ValuesOf(option)) found.words.push_back({std::move(value), ""});
  if (!found.words.empty()) return found;
  const std::string what =
      option.get_type_name() +
      (option.get_positional() ? ' ' + option.get_name(/*positional=*/true) : "");
  if (Names(what, "FILE") || Names(what, "COMMAND")) return {.kind = Kind::kFiles};
  if (Names(what, "DIR")) return {.kind = Kind::kFolders};
  if (Names(what, "SWEEP")) found.words = list_sweeps(place.server);
  return found;
}

std::vector<Candidate> OptionsFor(const Place& place) {
  std::vector<Candidate> words;
  for (const CLI::Option* option : OptionsOf(*place.verb)) {
    const bool is_given = std::ranges::find(place.given, option) != place.given.end();
    if (is_given && !TakesManyValues(*option)) continue;
    for (const std::string& name : NamesOf(*option))
      words.push_back({name, option->get_description()});
  }
  return words;
}

std::vector<Candidate> VerbsFor(const Place& place) {
  std::vector<Candidate> words;
  for (const CLI::App* verb : VerbsOf(*place.verb))
    words.push_back({verb->get_name(), verb->get_description()});
  return words;
}

// The positional that the next word is for; null if the verb takes no more.
const CLI::Option* NextPositional(const Place& place) {
  size_t before = place.positionals;
  for (const CLI::Option* option : PositionalsOf(*place.verb)) {
    const auto most = static_cast<size_t>(option->get_items_expected_max());
    if (before < most) return option;
    before -= most;
  }
  return nullptr;
}

Candidates AllFor(const std::string& word, const Place& place, const ListSweeps& list_sweeps) {
  if (place.awaited != nullptr) return ValuesFor(*place.awaited, place, list_sweeps);
  if (!place.only_positionals && word.starts_with("--") && word.find('=') != word.npos) {
    const std::string name = word.substr(0, word.find('='));
    const CLI::Option* const option = place.verb->get_option_no_throw(name);
    if (option == nullptr || !TakesValue(*option)) return {};
    Candidates values = ValuesFor(*option, place, list_sweeps);
    for (Candidate& value : values.words) value.word = name + '=' + value.word;
    return values;
  }
  if (!place.only_positionals) {
    if (word.starts_with('-')) return {.words = OptionsFor(place)};
    if (place.positionals == 0) {
      if (std::vector<Candidate> verbs = VerbsFor(place); !verbs.empty())
        return {.words = std::move(verbs)};
    }
  }
  if (const CLI::Option* positional = NextPositional(place))
    return ValuesFor(*positional, place, list_sweeps);
  return {.words = OptionsFor(place)};
}

}  // namespace

Candidates FindCandidates(const CLI::App& app, const std::vector<std::string>& words,
                          const ListSweeps& list_sweeps) {
  Place place{.verb = &app};
  for (size_t i = 0; i + 1 < words.size(); ++i) ReadWord(words[i], place);
  const std::string last = words.empty() ? "" : words.back();
  Candidates found = AllFor(last, place, list_sweeps);
  std::erase_if(found.words,
                [&](const Candidate& candidate) { return !candidate.word.starts_with(last); });
  return found;
}

std::string ToText(const Candidates& candidates) {
  std::string text = candidates.kind == Kind::kFiles     ? "files\n"
                     : candidates.kind == Kind::kFolders ? "folders\n"
                                                         : "words\n";
  for (const auto& [word, about] : candidates.words) {
    std::string line = about;
    std::ranges::replace_if(
        line, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
    text += word + (line.empty() ? "" : '\t' + line) + '\n';
  }
  return text;
}

}  // namespace attune::cli
