// Classifies each image that is written into a folder or moved there, until it is stopped: watch_folder MODEL FOLDER.
// Linux: the system says what changed (inotify).
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <sparsight/infer.hpp>
#include <stdexcept>

namespace infer = sparsight::infer;

// From here on the system keeps what happens in the folder until wait_for_files() reads it.
int start_watching(const char* folder) {
  const int watcher = inotify_init1(IN_CLOEXEC);
  if (watcher < 0 || inotify_add_watch(watcher, folder, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
    throw std::runtime_error(std::string("cannot watch ") + folder);
  return watcher;
}

// Calls found(name) for each file that is complete.
template <class Found>
void wait_for_files(int watcher, const Found& found) {
  alignas(inotify_event) char events[16384];
  for (ssize_t size = 0; (size = read(watcher, events, sizeof events)) > 0;)
    for (const char* at = events; at < events + size;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(at);
      if (event->len > 0) found(std::string(event->name));
      at += sizeof(inotify_event) + event->len;
    }
  throw std::runtime_error("cannot watch the folder any more");
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: watch_folder MODEL FOLDER\n");
    return 2;
  }
  const infer::Model model(argv[1]);
  infer::Session session(model);
  const int watcher = start_watching(argv[2]);
  std::printf("watching %s\n", argv[2]);
  std::fflush(stdout);
  wait_for_files(watcher, [&](const std::string& name) {
    std::ifstream file(std::string(argv[2]) + "/" + name, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    try {
      const infer::Prediction prediction = session.classify_encoded(std::as_bytes(std::span(bytes)));
      const int64_t best = prediction.top(1).front();
      std::printf("%s: %s %.1f %%\n", name.c_str(), model.class_name(best).c_str(),
                  100.0 * prediction.probabilities[static_cast<size_t>(best)]);
    } catch (const infer::Error& error) {  // not an image: the next one may be
      std::printf("%s: %s\n", name.c_str(), error.what());
    }
    std::fflush(stdout);
  });
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
