// Classifies an image with a trained model: classify RUN IMAGE. The example of docs/api.md.
#include <iostream>

#include <sparsight/core/error.h>
#include <sparsight/data/readers/image.h>
#include <sparsight/infer/loaded_model.h>
#include <sparsight/infer/predict.h>

int main(int argc, char** argv) {
  using namespace sparsight;
  if (argc != 3) {
    std::cerr << "usage: classify RUN IMAGE\n";
    return 2;
  }
  try {
    const LoadedModel model = load_model(argv[1]);  // a run folder or a checkpoint
    const ImageDecoding decoding{.channels = model.data.channels == 1 ? 1 : 3};
    const Prediction prediction = predict(model, read_image(argv[2], decoding), argv[2], 3);
    std::cout << to_text(prediction) << "\n";
  } catch (const Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
