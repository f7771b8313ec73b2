// What the examples of kernels (kernels/examples.h) compute with consistent arithmetic, on every architecture: the
// 64-bit FNV-1a hash of their bits. The numbers were printed by the test that compares them, on x86-64, where the
// levels avx2 and avx512 agree; they change only if a kernel or its example is changed.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace sparsight::cpu {

inline const std::map<std::string, uint64_t>& consistent_bits() {
  static const std::map<std::string, uint64_t> bits{
      {"product", 0xae3cfdcc00235030},
      {"activate", 0x4cd0fb3fbf7ae897},
      {"activate_backward", 0xc2a84481d391a4a3},
      {"multiply", 0x586b615b0d425d28},
      {"scaled_sum", 0x849f799b3e6ed779},
      {"dot", 0xe28684e01ce5d1b7},
      {"add_scaled", 0x8eb1fd6940e001f9},
      {"layer_norm", 0x7a39defe8f78d288},
      {"layer_norm_backward", 0xdc0f170f95f83ee2},
      {"softmax", 0x428d268b982f46b5},
      {"cross_entropy", 0xf6509b1367a91ab9},
      {"cross_entropy_backward", 0xa6e5ac07bb4f8dc2},
      {"attention_forward", 0x9665b263e0086701},
      {"attention_backward", 0x31486d41703dc177},
      {"adam", 0x3be06a25d99a3dab},
      {"convolve", 0x8b34be17956f56b5},
      {"scale_shift", 0x05ac5722e2457111},
      {"pack_panels", 0x5fd671cde2a599bd},
      {"random_bits", 0x8c70d4f9b68dc8c5},
      {"drop", 0x9d655d8030792d72},
  };
  return bits;
}

}  // namespace sparsight::cpu
