// The verbs of the program with their flags, as they are declared, for manual pages and the completion of shells.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace sparsight::cli {

struct CommandFlag {
  std::vector<std::string> names;  // with dashes: "-h", "--help"
  std::string help;
  std::string value;                 // what it takes: "FILE", "" for none
  std::vector<std::string> choices;  // the values that it takes, where they are a few; settings for --set
};

struct CommandArgument {
  std::string name, help;  // "IMAGES ..."
};

struct Command {
  std::string path;  // "dg sweep"; "" for the program itself
  std::string summary, examples;
  std::vector<CommandFlag> flags;
  std::vector<CommandArgument> arguments;
  std::vector<const Command*> verbs;  // below it

  std::string name() const { return path.substr(path.find_last_of(' ') + 1); }
};

// The program first, and each command before those below it.
std::vector<std::unique_ptr<Command>> command_tree(const CLI::App& program);

}  // namespace sparsight::cli
