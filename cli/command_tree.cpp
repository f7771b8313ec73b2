#include "cli/command_tree.h"

#include <sstream>

#include "cli/catalogue.h"
#include "sparsight/core/error.h"

namespace sparsight::cli {
namespace {

// "TEXT:{train,val,test}" are the choices of an option that CLI::IsMember checks.
std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> choices;
  if (option.check_lname("set") && option.get_type_name().starts_with("SECTION.KEY")) {
    for (const std::string& setting : setting_keys()) choices.push_back(setting + "=");
    return choices;
  }
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::istringstream names(type.substr(begin + 1, end - begin - 1));
  for (std::string name; std::getline(names, name, ',');) choices.push_back(name);
  return choices;
}

// "TEXT:{a,b}" and "INT:INT in [1 - 9]" without what follows the colon.
std::string value_of(const CLI::Option& option) {
  if (option.get_expected_max() == 0 || option.get_type_size() == 0) return "";
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

void add_option(const CLI::Option& option, Command& command) {
  if (option.get_lnames().empty() && option.get_snames().empty()) {
    command.arguments.push_back({value_of(option), option.get_description()});
    return;
  }
  CommandFlag flag{{}, option.get_description(), value_of(option), choices_of(option)};
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  command.flags.push_back(std::move(flag));
}

const Command* add_commands(const CLI::App& app, const std::string& path, std::vector<std::unique_ptr<Command>>& all) {
  Command* const command = all.emplace_back(std::make_unique<Command>()).get();
  command->path = path;
  command->summary = app.get_description();
  command->examples = app.get_footer();
  for (const CLI::Option* option : app.get_options()) add_option(*option, *command);
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    command->verbs.push_back(
        add_commands(*verb, path.empty() ? verb->get_name() : cat(path, " ", verb->get_name()), all));
  return command;
}

}  // namespace

std::vector<std::unique_ptr<Command>> command_tree(const CLI::App& program) {
  std::vector<std::unique_ptr<Command>> all;
  add_commands(program, "", all);
  return all;
}

}  // namespace sparsight::cli
