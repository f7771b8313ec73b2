// Classifies image files with a frozen model, in C++: infer_cpp MODEL IMAGE... Prints the most probable class of each.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sparsight/infer.hpp>

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: infer_cpp MODEL IMAGE...\n");
    return 2;
  }
  const sparsight::infer::Model model(argv[1]);
  sparsight::infer::Session session(model);
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    const sparsight::infer::Prediction prediction = session.classify_encoded(std::as_bytes(std::span(bytes)));
    const int64_t best = prediction.top(1).front();
    std::printf("%s: %s %.1f %%\n", argv[i], model.class_name(best).c_str(),
                100.0 * prediction.probabilities[static_cast<size_t>(best)]);
  }
  return 0;
} catch (const sparsight::infer::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
