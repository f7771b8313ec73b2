#include <memory>

#include "cli/completions.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace sparsight::cli {

void add_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* verb = add_verb(app, "completion", "Print a script with which a shell completes verbs, flags and settings",
                            "source <(sparsight completion bash)\n"
                            "sparsight completion zsh > ~/.zfunc/_sparsight\n"
                            "sparsight completion fish > ~/.config/fish/completions/sparsight.fish");
  verb->add_option("shell", *shell, "Shell: bash, zsh or fish")->required()->check(CLI::IsMember(completed_shells()));
  verb->callback([shell, &app] { output() << completion_script(*shell, app); });
}

}  // namespace sparsight::cli
