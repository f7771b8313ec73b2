// One function per verb: each declares its flags on a subcommand of `app` and sets the callback that runs it.
//
// Declarations (this folder) include nothing of torch: the front program has them too, and answers --help and usage
// errors without loading it. What a verb then does is declared in its cmd_x.h, as run_x(const XArguments&), and defined
// twice: in cli/work, which calls the library and prints, and in cli/front, which starts the full program.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sparsight::cli {

// A subcommand whose --help ends with `examples` (one or more lines, without indentation).
CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& summary, const std::string& examples);

// --weights: `type` receives one of weight_type_names(), or stays empty.
void add_weights_option(CLI::App& verb, std::string& type);

// The whole command line: the global flags and every verb.
void add_program(CLI::App& app);

void add_attack(CLI::App& app);
void add_bench(CLI::App& app);
void add_compare(CLI::App& app);
void add_completion(CLI::App& app);
void add_config(CLI::App& app);
void add_cost(CLI::App& app);  // also of config
void add_data(CLI::App& app);
void add_demo(CLI::App& app);
void add_dg(CLI::App& app);
void add_doctor(CLI::App& app);
void add_eval(CLI::App& app);
void add_explain(CLI::App& app);
void add_export(CLI::App& app);
void add_help(CLI::App& app);
void add_inspect(CLI::App& app);
void add_models(CLI::App& app);
void add_moe(CLI::App& app);
void add_predict(CLI::App& app);
void add_prune(CLI::App& app);
void add_report(CLI::App& app);
void add_reproduce(CLI::App& app);
void add_serve(CLI::App& app);
void add_superclass(CLI::App& app);
void add_sweep(CLI::App& app);
void add_train(CLI::App& app);
void add_version(CLI::App& app);
void add_watch(CLI::App& app);
void add_weights(CLI::App& app);

}  // namespace sparsight::cli
