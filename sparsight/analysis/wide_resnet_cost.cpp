#include "sparsight/analysis/wide_resnet_cost.h"

namespace sparsight {
namespace {

// Adds parts while it follows the shape of the map.
class Parts {
 public:
  Parts(int64_t channels, int64_t height, int64_t width) : channels_(channels), height_(height), width_(width) {}

  void norm(const std::string& name) { add(name, norm_cost(channels_)); }
  void conv(const std::string& name, int64_t out, int64_t stride) {
    const Cost place = conv_cost({channels_, out, 3, true});
    move_to(out, stride);
    add(name, on_units(place, places()));
  }
  // A 1x1 convolution beside the map's way, onto a map of the present shape.
  void shortcut(const std::string& name, int64_t in) {
    add(name, on_units(conv_cost({in, channels_, 1, true}), places()));
  }
  void add(const std::string& name, Cost cost) {
    const auto text = [](int64_t n) { return std::to_string(n); };
    parts_.push_back({name, cost, text(channels_) + "x" + text(height_) + "x" + text(width_)});
  }
  void head(int64_t outputs) {
    parts_.push_back({"head", linear_cost(channels_, outputs, true), std::to_string(outputs)});
  }

  int64_t channels() const { return channels_; }
  int64_t places() const { return height_ * width_; }
  std::vector<PartCost> take() { return std::move(parts_); }

 private:
  void move_to(int64_t channels, int64_t stride) {
    channels_ = channels;
    height_ = (height_ + stride - 1) / stride;
    width_ = (width_ + stride - 1) / stride;
  }
  int64_t channels_, height_, width_;
  std::vector<PartCost> parts_;
};

void add_experts(Parts& parts, const WideResnetShape& net, const std::string& name) {
  const int64_t places = net.patch * net.patch, channels = parts.channels();
  parts.add(name + ".router", on_units(router_cost(channels * places, net.experts), net.patches()));
  const auto add_sharing = [&](const std::string& part, int64_t experts, int64_t seen) {  // share out the channels
    const Cost place = conv_cost({channels, channels / experts, net.kernel, true});
    parts.add(name + part, copies(on_units(place, seen) + norm_cost(channels), experts));
  };
  add_sharing(".experts", net.experts, net.gathered ? net.taken * places : parts.places());
  if (net.shared > 0) add_sharing(".shared", net.shared, parts.places());
}

}  // namespace

std::vector<PartCost> wide_resnet_cost(const WideResnetShape& net) {
  Parts parts(net.channels, net.height, net.width);
  parts.conv("stem", 16, 1);
  const int64_t blocks = net.depth / 6;
  for (int64_t g = 0; g < 3; ++g)
    for (int64_t i = 0; i < blocks; ++i) {
      const std::string name = "groups." + std::to_string(g) + "." + std::to_string(i);
      const int64_t in = parts.channels(), out = net.widen * (int64_t{16} << g);
      parts.norm(name + ".norm1");
      parts.conv(name + ".conv1", out, g > 0 && i == 0 ? 2 : 1);
      if (net.experts > 0 && g == 2 && i == blocks - 1) {
        add_experts(parts, net, name + ".moe");
        continue;
      }
      parts.norm(name + ".norm2");
      parts.conv(name + ".conv2", out, 1);
      if (i == 0) parts.shortcut(name + ".shortcut", in);
    }
  parts.norm("norm");
  parts.head(net.outputs);
  return parts.take();
}

}  // namespace sparsight
