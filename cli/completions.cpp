#include "cli/completions.h"

#include <algorithm>

#include "cli/command_tree.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight::cli {
namespace {

using Commands = std::vector<std::unique_ptr<Command>>;

// In single quotes, as bash, zsh and fish read it.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The first sentence, in a line.
std::string brief(const std::string& help) {
  std::string text = help.substr(0, help.find_first_of("\n;"));
  std::replace(text.begin(), text.end(), ':', ',');
  return text;
}

// The paths of all verbs, as the labels of a case.
std::string verb_labels(const Commands& commands, const std::string& separator) {
  std::vector<std::string> paths;
  for (const auto& command : commands)
    if (!command->path.empty()) paths.push_back(in_quotes(command->path));
  return join(paths, separator);
}

// Shell code shared by bash and zsh: `verb` becomes the path of the verb that words[first] .. words[current - 1] reach.
std::string find_verb(const Commands& commands, const std::string& words, const std::string& first,
                      const std::string& current) {
  return cat("  local verb= longer i\n  for ((i = ", first, "; i < ", current,
             "; i++)); do\n    longer=\"$verb${verb:+ }${", words, "[i]}\"\n    case \"$longer\" in ",
             verb_labels(commands, "|"), ") verb=$longer ;; esac\n  done\n");
}

// Code that completes the value of each flag with choices: what complete(choices) returns.
template <class Complete>
std::string complete_values(const Commands& commands, const std::string& before, const Complete& complete) {
  std::string out = cat("  case \"$verb ", before, "\" in\n");
  for (const auto& command : commands)
    for (const CommandFlag& flag : command->flags) {
      if (flag.choices.empty()) continue;
      std::vector<std::string> labels;
      for (const std::string& name : flag.names) labels.push_back(in_quotes(cat(command->path, " ", name)));
      out += cat("    ", join(labels, "|"), ") ", complete(flag.choices), "; return ;;\n");
    }
  return out + "  esac\n";
}

// The flags of the program go with every verb.
std::vector<const CommandFlag*> flags_of(const Command& command, const Commands& commands) {
  std::vector<const CommandFlag*> flags;
  for (const CommandFlag& flag : command.flags) flags.push_back(&flag);
  if (&command != commands.front().get())
    for (const CommandFlag& flag : commands.front()->flags)
      if (std::ranges::none_of(command.flags, [&](const CommandFlag& own) { return own.names == flag.names; }))
        flags.push_back(&flag);
  return flags;
}

std::string bash_script(const Commands& commands) {
  std::string out =
      "# bash completion of sparsight: source it, or save it as ~/.local/share/bash-completion/completions/"
      "sparsight\n_sparsight() {\n  local word=${COMP_WORDS[COMP_CWORD]} words=\n";
  out += find_verb(commands, "COMP_WORDS", "1", "COMP_CWORD");
  out += complete_values(commands, "${COMP_WORDS[COMP_CWORD-1]}", [](const std::vector<std::string>& choices) {
    const bool goes_on = choices.front().ends_with("=");
    return cat(goes_on ? "compopt -o nospace; " : "", "COMPREPLY=($(compgen -W ", in_quotes(join(choices, " ")),
               " -- \"$word\"))");
  });
  out += "  case \"$verb\" in\n";
  for (const auto& command : commands) {
    std::vector<std::string> words;
    for (const Command* verb : command->verbs) words.push_back(verb->name());
    for (const CommandFlag* flag : flags_of(*command, commands))
      for (const std::string& name : flag->names) words.push_back(name);
    out += cat("    ", in_quotes(command->path), ") words=", in_quotes(join(words, " ")), " ;;\n");
  }
  // Without a match, readline completes names of files.
  return out +
         "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
         "complete -o bashdefault -o default -F _sparsight sparsight\n";
}

std::string zsh_script(const Commands& commands) {
  std::string out =
      "#compdef sparsight\n# zsh completion of sparsight: save it as _sparsight in a folder of $fpath\n"
      "_sparsight() {\n  local -a verbs flags\n";
  out += find_verb(commands, "words", "2", "CURRENT");
  out += complete_values(commands, "${words[CURRENT-1]}", [](const std::vector<std::string>& choices) {
    std::vector<std::string> all;
    for (const std::string& choice : choices) all.push_back(in_quotes(choice));
    return cat("compadd ", choices.front().ends_with("=") ? "-S '' " : "", "-- ", join(all, " "));
  });
  out += "  case \"$verb\" in\n";
  for (const auto& command : commands) {
    std::vector<std::string> verbs, flags;
    for (const Command* verb : command->verbs) verbs.push_back(in_quotes(cat(verb->name(), ":", brief(verb->summary))));
    for (const CommandFlag* flag : flags_of(*command, commands))
      for (const std::string& name : flag->names) flags.push_back(in_quotes(cat(name, ":", brief(flag->help))));
    out += cat("    ", in_quotes(command->path), ")\n      verbs=(", join(verbs, " "), ")\n      flags=(",
               join(flags, " "), ")\n      ;;\n");
  }
  return out +
         "  esac\n  if ((${#verbs})); then _describe verb verbs; fi\n"
         "  if [[ ${words[CURRENT]} == -* ]]; then _describe flag flags; else _files; fi\n}\n"
         "_sparsight \"$@\"\n";
}

std::string fish_script(const Commands& commands) {
  std::string out =
      "# fish completion of sparsight: save it as ~/.config/fish/completions/sparsight.fish\n"
      "function __sparsight_verb\n  set -l verb\n  for word in (commandline -opc)[2..-1]\n"
      "    set -l longer (string join ' ' $verb $word)\n    switch $longer\n      case ";
  out += verb_labels(commands, " ") + "\n        set verb $longer\n    end\n  end\n  echo $verb\nend\n";
  for (const auto& command : commands) {
    const std::string here = cat("complete -c sparsight -n 'test \"$(__sparsight_verb)\" = \"", command->path, "\"'");
    for (const Command* verb : command->verbs)
      out += cat(here, " -f -a ", verb->name(), " -d ", in_quotes(brief(verb->summary)), "\n");
    for (const CommandFlag* flag : flags_of(*command, commands)) {
      out += here;
      for (const std::string& name : flag->names)
        out += name.starts_with("--") ? cat(" -l ", name.substr(2)) : cat(" -s ", name.substr(1));
      if (!flag->value.empty()) out += " -r";
      if (!flag->choices.empty()) out += cat(" -f -a ", in_quotes(join(flag->choices, " ")));
      out += cat(" -d ", in_quotes(brief(flag->help)), "\n");
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> completed_shells() { return {"bash", "zsh", "fish"}; }

std::string completion_script(const std::string& shell, const CLI::App& program) {
  const Commands commands = command_tree(program);
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  return fish_script(commands);
}

}  // namespace sparsight::cli
