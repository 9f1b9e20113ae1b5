#include "cli/completion/candidates.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/completion/tree.h"

namespace attune::cli {
namespace {

using Kind = Candidates::Kind;

// The words of a command line before the one at the cursor.
struct ParsedLine {
  const CLI::App* command = nullptr;
  const CLI::Option* awaited = nullptr;  // the option whose value comes next
  bool only_positionals = false;         // after --
  size_t positionals = 0;                // number of positionals given
  std::vector<const CLI::Option*> given;
  ServerChoice server;
};

void NoteValue(const CLI::Option& option, const std::string& value, ParsedLine& line) {
  if (option.check_lname("server")) line.server.server = value;
  if (option.check_lname("data-dir")) line.server.data_dir = value;
  if (option.check_lname("token-file")) line.server.token_file = value;
}

void ReadOption(const std::string& word, ParsedLine& line) {
  const bool is_long = word.starts_with("--");
  const size_t name_end = is_long ? std::min(word.find('='), word.size()) : 2;
  const CLI::Option* const option = line.command->get_option_no_throw(word.substr(0, name_end));
  if (option == nullptr) return;
  line.given.push_back(option);
  if (!TakesValue(*option)) return;
  if (name_end == word.size()) {
    line.awaited = option;
  } else {
    NoteValue(*option, word.substr(name_end + (is_long ? 1 : 0)), line);
  }
}

void ReadWord(const std::string& word, ParsedLine& line) {
  if (line.awaited != nullptr) {
    NoteValue(*line.awaited, word, line);
    line.awaited = nullptr;
  } else if (line.only_positionals) {
    ++line.positionals;
  } else if (word == "--") {
    line.only_positionals = true;
  } else if (word.size() > 1 && word.starts_with('-')) {
    ReadOption(word, line);
  } else if (const CLI::App* command = FindCommand(*line.command, word);
             command != nullptr && line.positionals == 0) {
    line.command = command;
    line.given.clear();
  } else {
    ++line.positionals;
  }
}

// Whether `text` has the upper-case word `name`: MODEL|FILE has FILE.
bool HasWord(const std::string& text, std::string_view name) {
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

Candidates ValuesFor(const CLI::Option& option, const ParsedLine& line,
                     const ListSweeps& list_sweeps) {
  Candidates found;
  for (std::string& value : ValuesOf(option)) found.words.push_back({std::move(value), ""});
  if (!found.words.empty()) return found;
  const std::string what =
      option.get_type_name() +
      (option.get_positional() ? ' ' + option.get_name(/*positional=*/true) : "");
  if (HasWord(what, "FILE") || HasWord(what, "COMMAND")) return {.kind = Kind::kFiles};
  if (HasWord(what, "DIR")) return {.kind = Kind::kFolders};
  if (HasWord(what, "SWEEP")) found.words = list_sweeps(line.server);
  return found;
}

std::vector<Candidate> OptionsFor(const ParsedLine& line) {
  std::vector<Candidate> words;
  for (const CLI::Option* option : OptionsOf(*line.command)) {
    const bool is_given = std::ranges::find(line.given, option) != line.given.end();
    if (is_given && !TakesManyValues(*option)) continue;
    for (const std::string& name : NamesOf(*option))
      words.push_back({name, option->get_description()});
  }
  return words;
}

std::vector<Candidate> CommandsFor(const ParsedLine& line) {
  std::vector<Candidate> words;
  for (const CLI::App* command : CommandsOf(*line.command))
    words.push_back({command->get_name(), command->get_description()});
  return words;
}

// The positional that the next word is for; null if the command takes no more.
const CLI::Option* NextPositional(const ParsedLine& line) {
  size_t before = line.positionals;
  for (const CLI::Option* option : PositionalsOf(*line.command)) {
    const auto most = static_cast<size_t>(option->get_items_expected_max());
    if (before < most) return option;
    before -= most;
  }
  return nullptr;
}

Candidates CandidatesFor(const std::string& word, const ParsedLine& line,
                         const ListSweeps& list_sweeps) {
  if (line.awaited != nullptr) return ValuesFor(*line.awaited, line, list_sweeps);
  if (!line.only_positionals && word.starts_with("--") && word.find('=') != word.npos) {
    const std::string name = word.substr(0, word.find('='));
    const CLI::Option* const option = line.command->get_option_no_throw(name);
    if (option == nullptr || !TakesValue(*option)) return {};
    Candidates values = ValuesFor(*option, line, list_sweeps);
    for (Candidate& value : values.words) value.word = name + '=' + value.word;
    return values;
  }
  if (!line.only_positionals) {
    if (word.starts_with('-')) return {.words = OptionsFor(line)};
    if (line.positionals == 0) {
      if (std::vector<Candidate> commands = CommandsFor(line); !commands.empty())
        return {.words = std::move(commands)};
    }
  }
  if (const CLI::Option* positional = NextPositional(line))
    return ValuesFor(*positional, line, list_sweeps);
  return {.words = OptionsFor(line)};
}

}  // namespace

Candidates FindCandidates(const CLI::App& app, const std::vector<std::string>& words,
                          const ListSweeps& list_sweeps) {
  ParsedLine line{.command = &app};
  for (size_t i = 0; i + 1 < words.size(); ++i) ReadWord(words[i], line);
  const std::string last = words.empty() ? "" : words.back();
  Candidates found = CandidatesFor(last, line, list_sweeps);
  std::erase_if(found.words,
                [&](const Candidate& candidate) { return !candidate.word.starts_with(last); });
  return found;
}

std::string ToText(const Candidates& candidates) {
  std::string text = candidates.kind == Kind::kFiles     ? "files\n"
                     : candidates.kind == Kind::kFolders ? "folders\n"
                                                         : "words\n";
  for (const auto& [word, about] : candidates.words) {
    std::string description = about;
    std::ranges::replace_if(
        description, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
    text += word + (description.empty() ? "" : '\t' + description) + '\n';
  }
  return text;
}

}  // namespace attune::cli
