#include "bench/moe/memory_use.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "bench/moe/contenders.h"
#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/arena.h"

namespace sparsight::bench {
namespace {

// A value of /proc/self/status in bytes.
double status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (double kilobytes = 0; word == name + ":" && file >> kilobytes) return kilobytes * 1024;
  return 0;
}

// Resets the peak to the memory that is resident now.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

struct MemoryUse {
  double saved;  // bytes that the forward pass keeps for the backward pass, with its scratch
  double peak;   // of a whole step, without the gradients of weights
};

MemoryUse measure(const Forward& forward, const Load& load, const ExpertMlpWeights& weights) {
  double gradients = 0;
  for (const at::Tensor* w : {&weights.w1, &weights.b1, &weights.w2, &weights.b2}) {
    w->requires_grad_(true);
    gradients += 4.0 * static_cast<double>(w->numel());
  }
  Load in = load;
  in.tokens = load.tokens.detach().requires_grad_(true);
  reset_peak();
  const double before = status("VmRSS");
  const at::Tensor out = forward(in, weights);
  MemoryUse use{};
  use.saved = status("VmRSS") - before;
  (out * load.out_grad).sum().backward();
  use.peak = status("VmHWM") - before - gradients;
  return use;
}

// Measures in a child process: what the parent has loaded is shared, and what the child adds is its own.
MemoryUse measure_in_own_process(const Forward& forward, int64_t tokens, int64_t experts, int64_t stack, int64_t k,
                                 int64_t threads) {
  int ends[2];
  if (pipe(ends) != 0) fail("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) fail("cannot start a process");
  if (child == 0) {
    at::set_num_threads(static_cast<int>(threads));
    mallopt(M_MMAP_THRESHOLD, 1 << 20);  // freed memory goes back to the system
    // A small step first, so that what libraries allocate on first use is not counted.
    const ExpertMlpWeights weights = random_weights(stack);
    const Load load = random_loads(tokens, experts, k).front();
    measure(forward, random_loads(64, experts, k).front(), random_weights(stack));
    cpu::release_arena();
    const MemoryUse use = measure(forward, load, weights);
    const bool sent = write(ends[1], &use, sizeof use) == static_cast<ssize_t>(sizeof use);
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  MemoryUse use{};
  const bool got = read(ends[0], &use, sizeof use) == static_cast<ssize_t>(sizeof use);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!got || status != 0) fail("the process that measures memory has failed");
  return use;
}

}  // namespace

void print_memory_use(int64_t tokens, int64_t experts, int64_t k, int64_t threads) {
  const MemoryUse ours = measure_in_own_process(run_ours, tokens, experts, experts, k, threads);
  const MemoryUse dense = measure_in_own_process(run_dense, tokens, experts, 1, k, threads);
  const double permuted = 4.0 * static_cast<double>(tokens * k * kWidth), mega = 1 << 20;
  std::printf("Memory of a training step, T=%ld, E=%ld, k=%ld (MiB; without weights and their gradients):\n", tokens,
              experts, k);
  const auto line = [&](const char* what, double own, double yardstick) {
    std::printf("  %s: experts %.0f, dense %.0f, dense and permuted rows %.0f, ratio %.2f\n", what, own / mega,
                yardstick / mega, (yardstick + permuted) / mega, own / (yardstick + permuted));
  };
  line("saved by the forward pass", ours.saved, dense.saved);
  line("peak of the whole step", ours.peak, dense.peak);
  std::printf("\n");
}

}  // namespace sparsight::bench
