#include "cli/man_page.h"

#include <algorithm>
#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight::cli {
namespace {

// Text of a page: no line of it is a request, and dashes are those that a user copies.
std::string text(const std::string& plain) {
  std::string out;
  for (size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    if ((c == '.' || c == '\'') && (i == 0 || plain[i - 1] == '\n')) out += "\\&";
    out += c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string(1, c);
  }
  return out;
}

std::string synopsis(const Command& command) {
  std::string out = cat(".B ", text(command.path.empty() ? "sparsight" : "sparsight " + command.path), "\n");
  if (!command.flags.empty()) out += "[OPTIONS]\n";
  if (!command.verbs.empty()) out += "VERB\n";
  for (const CommandArgument& argument : command.arguments) out += text(argument.name) + "\n";
  return out;
}

std::string entry(const std::string& tag, const std::string& help) { return cat(".TP\n", tag, "\n", text(help), "\n"); }

std::string flag_entry(const CommandFlag& flag) {
  std::vector<std::string> names;
  for (const std::string& name : flag.names) names.push_back(cat("\\fB", text(name), "\\fR"));
  std::string tag = join(names, ", ");
  if (!flag.value.empty()) tag += cat(" \\fI", text(flag.value), "\\fR");
  const bool few = !flag.choices.empty() && !flag.choices.front().ends_with("=");
  return entry(tag, few ? cat(flag.help, " (", join(flag.choices), ")") : flag.help);
}

// The examples, which stand as they are.
std::string examples(const std::string& footer) {
  std::istringstream lines(footer);
  std::string line, out;
  std::getline(lines, line);
  while (std::getline(lines, line)) out += text(line.substr(std::min<size_t>(2, line.size()))) + "\n";
  return out.empty() ? "" : cat(".SH EXAMPLES\n.nf\n", out, ".fi\n");
}

}  // namespace

std::string man_page_name(const Command& command) {
  std::string name = command.path.empty() ? "sparsight" : "sparsight " + command.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const Command& command) {
  const std::string name = man_page_name(command);
  std::string out = cat(".TH \"", text(name), "\" 1 \"\" \"sparsight " SPARSIGHT_VERSION "\" \"Sparsight\"\n.SH NAME\n",
                        text(name), " \\- ", text(command.summary), "\n.SH SYNOPSIS\n", synopsis(command));
  if (!command.arguments.empty()) out += ".SH ARGUMENTS\n";
  for (const CommandArgument& argument : command.arguments)
    out += entry(cat("\\fI", text(argument.name), "\\fR"), argument.help);
  if (!command.flags.empty()) out += ".SH OPTIONS\n";
  for (const CommandFlag& flag : command.flags) out += flag_entry(flag);
  if (!command.verbs.empty()) out += ".SH VERBS\n";
  for (const Command* verb : command.verbs)
    out += entry(cat("\\fB", text(man_page_name(*verb)), "\\fR(1)"), verb->summary);
  return out + examples(command.examples);
}

}  // namespace sparsight::cli
