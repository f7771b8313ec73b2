// OpenMP's runtime on threads of the C++ library, for builds with the thread sanitizer: it does not see how libgomp's
// own threads wait for each other, and would report every parallel region as a race. The program's functions precede
// those of libgomp for libtorch too. Threads are made anew for each region. Loops that OpenMP hands out dynamically and
// sections, which nothing in the tests runs, end the program.
#include <omp.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace {

struct Region {
  explicit Region(int threads) : threads(threads), barrier(threads) {}
  const int threads;
  std::barrier<> barrier;
  std::mutex mutex;
  std::set<int> singles;  // blocks of `single` that a thread has entered
};

struct Place {
  Region* region = nullptr;
  int thread = 0, singles = 0;
};
thread_local Place place;
thread_local int wanted_threads = 0;  // 0: as many as there are processors
std::mutex critical, atomic;

int processors() { return static_cast<int>(std::thread::hardware_concurrency()); }

void run(Region& region, int thread, void (*body)(void*), void* data) {
  const Place outer = place;
  place = {&region, thread};
  body(data);
  place = outer;
}

[[noreturn]] void not_here(const char* function) {
  std::fprintf(stderr, "%s: not in tests/support/openmp_on_threads.cpp\n", function);
  std::abort();
}

}  // namespace

extern "C" {
int omp_get_num_procs() { return processors(); }
int omp_get_max_threads() { return wanted_threads > 0 ? wanted_threads : processors(); }
void omp_set_num_threads(int threads) { wanted_threads = threads; }
int omp_get_num_threads() { return place.region ? place.region->threads : 1; }
int omp_get_thread_num() { return place.thread; }
int omp_in_parallel() { return omp_get_num_threads() > 1; }

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned) {
  const int wanted = threads > 0 ? static_cast<int>(threads) : omp_get_max_threads();
  Region region(place.region ? 1 : wanted);  // regions inside others have one thread
  std::vector<std::thread> others;
  for (int thread = 1; thread < region.threads; ++thread)
    others.emplace_back([&region, thread, body, data] { run(region, thread, body, data); });
  run(region, 0, body, data);
  for (std::thread& other : others) other.join();
}
void GOMP_barrier() {
  if (place.region) place.region->barrier.arrive_and_wait();
}
bool GOMP_single_start() {
  if (!place.region) return true;
  const std::lock_guard lock(place.region->mutex);
  return place.region->singles.insert(place.singles++).second;
}
void GOMP_critical_start() { critical.lock(); }
void GOMP_critical_end() { critical.unlock(); }
void GOMP_critical_name_start(void**) { critical.lock(); }
void GOMP_critical_name_end(void**) { critical.unlock(); }
void GOMP_atomic_start() { atomic.lock(); }
void GOMP_atomic_end() { atomic.unlock(); }

void GOMP_loop_dynamic_start() { not_here(__func__); }
void GOMP_loop_dynamic_next() { not_here(__func__); }
void GOMP_loop_ordered_dynamic_start() { not_here(__func__); }
void GOMP_loop_ordered_dynamic_next() { not_here(__func__); }
void GOMP_loop_end() { not_here(__func__); }
void GOMP_loop_end_nowait() { not_here(__func__); }
void GOMP_ordered_start() { not_here(__func__); }
void GOMP_ordered_end() { not_here(__func__); }
void GOMP_sections_start() { not_here(__func__); }
void GOMP_sections_next() { not_here(__func__); }
void GOMP_sections_end_nowait() { not_here(__func__); }
}
