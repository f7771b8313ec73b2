// One function per verb: each declares its flags on a subcommand of `app` and sets the callback that runs it.
// A verb parses, calls the library and prints; it contains no logic of its own. stdout carries only results
// (cli/output.h); messages and progress go through core/log.h and core/progress.h (--quiet and --log-json work for
// every verb).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace sparsight::cli {

// A subcommand whose --help ends with `examples` (one or more lines, without indentation).
CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& summary, const std::string& examples);

// Sets the work of a verb that checks interrupted() (core/interrupt.h): on the first Ctrl-C it finishes its step. Other
// verbs end at once.
void interruptible(CLI::App* verb, const std::function<void()>& work);

// --weights: `type` receives one of weight_type_names(), or stays empty.
void add_weights_option(CLI::App& verb, std::string& type);

// The whole command line: the global flags and every verb.
void add_program(CLI::App& app);

void add_bench(CLI::App& app);
void add_compare(CLI::App& app);
void add_config(CLI::App& app);
void add_data(CLI::App& app);
void add_doctor(CLI::App& app);
void add_eval(CLI::App& app);
void add_explain(CLI::App& app);
void add_moe(CLI::App& app);
void add_predict(CLI::App& app);
void add_report(CLI::App& app);
void add_reproduce(CLI::App& app);
void add_train(CLI::App& app);
void add_version(CLI::App& app);

}  // namespace sparsight::cli
