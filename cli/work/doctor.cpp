#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <ATen/Parallel.h>

#include "cli/cmd_doctor.h"
#include "cli/output.h"
#include "cli/work/product_rates.h"
#include "sparsight/core/error.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/number_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/dist/join.h"
#include "sparsight/dist/probe.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/report/run/collapse.h"
#include "sparsight/report/run/run_summary.h"

namespace sparsight::cli {
namespace {

// Prints facts and counts problems.
struct Findings {
  int problems = 0;

  void fact(const std::string& text) { output() << "ok       " << text << "\n"; }
  void note(const std::string& text) { output() << "note     " << text << "\n"; }
  void problem(const std::string& text) {
    output() << "PROBLEM  " << text << "\n";
    ++problems;
  }
  void end() const {
    if (problems > 0) fail(problems, problems == 1 ? " problem" : " problems", ", see above");
    output() << "ok\n";
  }
};

void look_at_processor(Findings& findings) {
  const std::string level = instruction_set();
  if (level == "DEFAULT")
    findings.note(
        "instruction set: neither AVX2 nor AVX-512; everything works, but slowly (is ATEN_CPU_CAPABILITY set?)");
  else
    findings.fact("instruction set: " + level);
  findings.fact(has_fast_bfloat16() ? "bf16 in hardware: yes" : "bf16 in hardware: no; use fp32 on this processor");
  findings.fact(cat("expert kernels: ", active_isa(), " (available: ", join(isa_names()), ")",
                    consistent_arithmetic() ? ", consistent arithmetic" : ""));
  const int threads = at::get_num_threads();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (threads > cores)
    findings.problem(cat(threads, " threads on ", cores, " cores; unset OMP_NUM_THREADS or set it to ", cores));
  else if (threads < cores)
    findings.note(cat(threads, " threads on ", cores, " cores (raise it with OMP_NUM_THREADS or run.threads)"));
  else
    findings.fact(cat(threads, " threads on ", cores, " cores"));
  double busy = 0;  // load average of the last minute
  if (getloadavg(&busy, 1) == 1 && busy > 0.5)
    findings.note(cat("other processes keep about ", std::min(cores, static_cast<int>(std::ceil(busy))), " of ", cores,
                      " cores busy: training will take longer"));
  const ProductRates rates = measure_products();
  std::string measured = cat("linear layers: ", std::lround(rates.ours), " GFLOP/s in fp32");
  if (rates.ours_bf16 > 0) measured += cat(", ", std::lround(rates.ours_bf16), " in bf16");
  findings.fact(cat(measured, " (torch: ", std::lround(rates.torch), " in fp32)"));
}

void look_at_memory(Findings& findings) {
  const double gigabytes = static_cast<double>(available_memory_bytes()) / 1e9;
  const std::string text = cat(static_cast<int>(gigabytes * 10) / 10.0, " GB memory free");
  if (gigabytes > 0 && gigabytes < 1)
    findings.problem(text + "; training a small model needs 1 GB: close other programs");
  else
    findings.fact(text);
}

void look_at_data(Findings& findings) {
  const char* root = std::getenv("SPARSIGHT_DATA");
  if (!root || !*root)
    findings.note("SPARSIGHT_DATA is not set: only generated datasets and paths given as data.root can be used");
  else if (!std::filesystem::is_directory(root))
    findings.problem(cat("SPARSIGHT_DATA=", printable(root), " is not a folder; set it to the folder of the datasets"));
  else
    findings.fact(cat("data: ", printable(root)));
}

void look_at_ranks(Findings& findings) {
  constexpr int64_t kNumbers = 1'000'000;
  if (!dist::is_available())
    return findings.note(
        "no collectives for several processes (--processes, torchrun): install libgloo-dev and build again");
  try {
    const double seconds = dist::two_rank_sum_seconds(kNumbers);
    findings.fact(cat("several processes: gloo; two sum up a million gradients in ",
                      static_cast<int>(seconds * 1e4) / 10.0, " ms"));
  } catch (const Error& error) {
    findings.problem(cat("several processes: ", error.what()));
  }
}

// A layer's experts in a line of its own where all is well.
void look_at_experts(const RunSummary& run, Findings& findings) {
  const Json eval = final_eval(run.log, true);
  const Json& layers = member(eval, "layers");
  if (!layers.is_array() || layers.empty()) return findings.note("no evaluation of this run has layers of experts");
  const std::vector<std::string> collapse = find_collapse(run.log, run.config);
  for (const std::string& line : collapse) findings.problem(line);
  for (const Json& layer : layers)
    if (find_collapse(Json::array({layer})).empty())
      findings.fact(cat(printable(text(layer, "layer")), ": busiest expert at ",
                        fixed(number(layer, "max_over_mean").value_or(0), 2), " of an even share, ",
                        percent(number(layer, "dropped").value_or(0), 1), " dropped"));
}

void look_at_run(const std::string& path, Findings& findings) {
  const RunSummary run = read_run_summary(path);
  for (const std::string& warning : run.warnings) findings.problem(warning);
  if (run.log.done.is_null()) findings.note("this run has not ended; train --resume goes on with it");
  look_at_experts(run, findings);
}

}  // namespace

void run_doctor(const std::string& run) {
  Findings findings;
  if (!run.empty()) {
    look_at_run(run, findings);
    findings.end();
    return;
  }
  findings.fact(cat("sparsight ", SPARSIGHT_VERSION, ", libtorch ", torch_version(), ", ", compiler_name()));
  look_at_processor(findings);
  look_at_memory(findings);
  look_at_data(findings);
  look_at_ranks(findings);
  findings.end();
}

}  // namespace sparsight::cli
