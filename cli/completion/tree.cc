#include "cli/completion/tree.h"

namespace attune::cli {

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) {
    return !option->get_group().empty() && option->nonpositional();
  });
}

std::vector<const CLI::Option*> PositionalsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool TakesManyValues(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// CLI11 keeps the sets of IsMember and CheckedTransformer only in the texts that help shows:
// `{table,json}`, `value in {admin->1,viewer->0} OR {1,0}`.
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  const std::string text = option.get_type_name();
  const size_t begin = text.find('{');
  const size_t end = text.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::vector<std::string> values;
  for (const std::string& value :
       CLI::detail::split(text.substr(begin + 1, end - begin - 1), ',')) {
    values.push_back(value.substr(0, value.find("->")));
  }
  return values;
}

std::string ValueName(const CLI::Option& option) {
  if (!TakesValue(option)) return "";
  const std::string text = option.get_type_name();
  // After a colon, or instead of a name, CLI11 describes the allowed values.
  const std::string name = text.substr(0, text.find_first_of(":{ ["));
  if (name == "HOST") return "HOST:PORT";
  const bool is_general = name.empty() || name == "TEXT" || name == "INT" || name == "UINT";
  return is_general && option.get_positional() ? option.get_name(/*positional=*/true) : name;
}

namespace {

Json DescribeOption(const CLI::Option& option, bool is_positional) {
  return {{"names",
           is_positional ? std::vector{option.get_name(/*positional=*/true)} : NamesOf(option)},
          {"about", option.get_description()},
          {"value", ValueName(option)},
          {"values", ValuesOf(option)},
          {"default", option.get_default_str()},
          {"environment", option.get_envname()},
          {"required", option.get_required()},
          {"many", TakesManyValues(option)}};
}

}  // namespace

Json DescribeTree(const CLI::App& app) {
  Json tree = {{"name", app.get_name()},       {"about", app.get_description()},
               {"footer", app.get_footer()},   {"aliases", app.get_aliases()},
               {"positionals", Json::array()}, {"options", Json::array()},
               {"verbs", Json::array()}};
  for (const CLI::Option* option : PositionalsOf(app))
    tree["positionals"].push_back(DescribeOption(*option, true));
  for (const CLI::Option* option : OptionsOf(app))
    tree["options"].push_back(DescribeOption(*option, false));
  for (const CLI::App* command : CommandsOf(app)) tree["verbs"].push_back(DescribeTree(*command));
  return tree;
}

}  // namespace attune::cli
