#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/command_tree.h"
#include "cli/man_page.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight::cli {
namespace {

// The help of the verb of these names below `app`.
std::string help_of(const CLI::App& app, const std::vector<std::string>& names) {
  const CLI::App* verb = &app;
  std::string path = app.get_name();
  for (const std::string& name : names) {
    std::vector<std::string> known;
    const CLI::App* next = nullptr;
    for (const CLI::App* below : verb->get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(below->get_name());
      if (below->check_name(name)) next = below;
    }
    if (!next) fail_usage("unknown verb \"", printable(name), "\"", suggestion(name, known));
    verb = next;
    path += " " + verb->get_name();
  }
  return verb->get_formatter()->make_help(verb, path, CLI::AppFormatMode::Normal);
}

std::string man_page_of(const CLI::App& program, const std::vector<std::string>& names) {
  std::string page;
  for (const auto& command : command_tree(program))
    if (command->path == join(names, " ")) page = man_page(*command);
  return page;
}

// sparsight.1, sparsight-train.1, ...
void write_man_pages(const CLI::App& program, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& command : command_tree(program)) {
    const std::filesystem::path path = folder / (man_page_name(*command) + ".1");
    std::ofstream file(path, std::ios::binary);
    file << man_page(*command);
    if (!file.flush()) fail("cannot write ", printable(path.string()), "; is the disk full, or the folder read-only?");
  }
}

}  // namespace

void add_help(CLI::App& app) {
  struct Arguments {
    std::vector<std::string> verb;
    bool man = false;
    std::string folder;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = add_verb(app, "help", "Print the help of a verb",
                            "sparsight help train\n"
                            "sparsight help dg sweep\n"
                            "sparsight help train --man | man -l -");
  verb->add_option("verb", arguments->verb, "Verb (default: the program)")->type_name("VERB");
  verb->add_flag("--man", arguments->man, "Print a manual page, which man formats");
  verb->add_option("--man-pages", arguments->folder, "Write the manual pages of all verbs into a folder")
      ->type_name("FOLDER");
  verb->callback([arguments, &app] {
    if (!arguments->folder.empty()) return write_man_pages(app, arguments->folder);
    const std::string help = help_of(app, arguments->verb);  // refuses unknown names
    output() << (arguments->man ? man_page_of(app, arguments->verb) : help);
  });
}

}  // namespace sparsight::cli
