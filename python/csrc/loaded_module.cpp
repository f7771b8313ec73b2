#include "python/csrc/loaded_module.h"

#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include "python/csrc/checked_arguments.h"
#include "python/csrc/operators.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/io/weights.h"
#include "sparsight/train/trained_predictor.h"

namespace sparsight::python {
namespace {

class LoadedModule : public torch::CustomClassHolder {
 public:
  LoadedModule(const std::string& path, const std::string& checkpoint, const std::vector<std::string>& overrides,
               const std::string& labels, const std::string& normalize) {
    BareOptions bare;
    bare.labels = labels;
    bare.normalize = normalize;
    loaded_ = load_model_or_weights({path, checkpoint, overrides, bare, /*needs_data=*/false});
    if (loaded_.model && predicts_with_more(loaded_))
      fail(printable(path), " was trained by ", loaded_.algorithm,
           ", which predicts with more than the model; only the program does that: sparsight eval, sparsight predict");
    if (!loaded_.model)
      fail(printable(path), " is a frozen model, which has no gradients; load the run that it was exported from");
    for (const auto& [name, tensor] : named_weights(*loaded_.model)) {
      names_.push_back(name);
      tensors_.push_back(tensor);
      shapes_.push_back(tensor.sizes().vec());
    }
    parameters_ = std::ssize(loaded_.model->named_parameters());
  }

  std::string info() const {
    return json_text({{"path", printable(loaded_.path)},
                      {"step", loaded_.step},
                      {"weights", loaded_.weights},
                      {"classes", printable_names(loaded_.data.classes)},
                      {"image", {loaded_.shape.channels, loaded_.shape.height, loaded_.shape.width}},
                      {"config", loaded_.config},
                      {"parameters", parameters_}});
  }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

  std::tuple<Tensor, Tensor> forward(const Tensor& images, bool training, int64_t seed, int64_t step) const {
    check_storage(images);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].sizes() != at::IntArrayRef(shapes_[i]))
        fail(names_[i], " must stay ", at::IntArrayRef(shapes_[i]), ", got ", tensors_[i].sizes());
      check_storage(tensors_[i]);
    }
    ModelInput input{.images = images};
    if (training) input.mode = ForwardMode::training();
    input.random = {static_cast<uint64_t>(seed), static_cast<uint64_t>(step)};
    const ModelOutput output = loaded_.model->forward(input);
    Tensor loss = at::zeros({}, output.logits.options());
    for (const NamedLoss& term : output.losses)
      if (term.weight != 0) loss = loss + term.value.to(loss.scalar_type()) * term.weight;
    return {output.logits, loss};
  }

  Tensor preprocess(const Tensor& image) const {
    if (image.dim() != 3 || image.scalar_type() != at::kByte)
      fail_usage("an image must be uint8 [C,H,W], got ", image.sizes(), " of type ",
                 c10::toString(image.scalar_type()));
    return model_image(loaded_, image.contiguous());
  }

 private:
  LoadedModel loaded_;
  std::vector<std::string> names_;
  std::vector<Tensor> tensors_;  // of the model
  std::vector<std::vector<int64_t>> shapes_;
  int64_t parameters_ = 0;  // how many of them are parameters: the first ones
};

using Self = c10::intrusive_ptr<LoadedModule>;

}  // namespace

void define_loaded_module(torch::Library& m) {
  m.class_<LoadedModule>("LoadedModule")
      .def(torch::init([](const std::string& path, const std::string& checkpoint,
                          const std::vector<std::string>& overrides, const std::string& labels,
                          const std::string& normalize) {
        return run_operator(
            [&] { return c10::make_intrusive<LoadedModule>(path, checkpoint, overrides, labels, normalize); });
      }))
      .def("info", [](const Self& self) { return self->info(); })
      .def("names", [](const Self& self) { return self->names(); })
      .def("tensors", [](const Self& self) { return self->tensors(); })
      .def("forward",
           [](const Self& self, const Tensor& images, bool training, int64_t seed, int64_t step) {
             return run_operator([&] { return self->forward(images, training, seed, step); });
           })
      .def("preprocess", [](const Self& self, const Tensor& image) {
        return run_operator([&] { return self->preprocess(checked(image)); });
      });
}

}  // namespace sparsight::python
