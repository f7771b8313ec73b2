#include "sparsight/ops/packed_experts.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

#include "sparsight/core/error.h"
#include "tests/ops/expert_cases.h"
#include "tests/ops/packed_error.h"
#include "tests/support/layouts.h"

namespace sparsight::packed_experts_test {
namespace {

using test::as_double;
using test::at_each_level;
using test::Case;
using test::Exact;
using test::exact;
using test::exact_result;
using test::packed_error;
using test::ragged_sizes;
using test::random_case;
using test::route;
using test::Sizes;
using test::within_packed_error;

constexpr WeightType kTypes[] = {WeightType::fp32, WeightType::bf16, WeightType::int8};

void expect_close(const at::Tensor& got, const Case& c, const PackedExperts& packed, Activation activation,
                  const std::string& what) {
  const Exact e = exact(c, packed);
  EXPECT_TRUE(within_packed_error(got, e, packed.type, activation)) << what;
  if (!test::rounds_rows(packed.type) || got.numel() <= 1000) return;  // exact, or not enough for an average
  const at::Tensor error = as_double(got) - exact_result(e, activation);
  const at::Tensor typical = packed_error(e, packed.type, activation, 2);
  EXPECT_LT(error.square().mean().sqrt().item<double>(), 1.2 * typical.square().mean().sqrt().item<double>()) << what;
}

at::Tensor whole_numbers(at::IntArrayRef sizes, uint64_t seed, double most) {
  return test::random_tensor(sizes, seed, torch::kFloat).round().clamp(-most, most);
}

}  // namespace

TEST(PackedExperts, ComputeWithTheirUnpackedWeights) {
  at_each_level([](const std::string& level) {
    uint64_t seed = 1;
    for (const Sizes& s : ragged_sizes())
      for (const WeightType type : kTypes) {
        const auto activation = static_cast<Activation>(seed % activation_names().size());
        const Case c = random_case(s, seed, torch::kFloat, seed % 5 > 1);
        const PackedExperts packed = pack_expert_weights(c.weights, type);
        expect_close(packed_experts(c.tokens, c.rows, packed, activation), c, packed, activation,
                     cat(level, ", case ", seed));
        ++seed;
      }
  });
}

// Whole numbers up to 256 have 8 significant bits: nothing is rounded, and every element must be right to the bit.
TEST(PackedExperts, AreExactInBf16OnSmallWholeNumbers) {
  at_each_level([](const std::string& level) {
    uint64_t seed = 1;
    for (const Sizes& s : ragged_sizes()) {
      Case c = random_case(s, seed);
      c.tokens = whole_numbers({s.tokens, s.width}, seed * 10, 2);
      c.rows.gate = torch::ones_like(c.rows.gate) * 0.5;
      c.weights = {whole_numbers({s.experts, s.width, s.hidden}, seed * 10 + 1, 1),
                   whole_numbers({s.experts, s.hidden}, seed * 10 + 2, 3),
                   whole_numbers({s.experts, s.hidden, s.width}, seed * 10 + 3, 1),
                   whole_numbers({s.experts, s.width}, seed * 10 + 4, 3)};
      const PackedExperts packed = pack_expert_weights(c.weights, WeightType::bf16);
      const Exact e = exact(c, packed);
      EXPECT_TRUE(torch::equal(as_double(packed_experts(c.tokens, c.rows, packed, Activation::relu)),
                               exact_result(e, Activation::relu)))
          << level << ", case " << seed;
      ++seed;
    }
  });
}

TEST(PackedExperts, GiveTheBitsOfTheirWeightsInFp32) {
  at_each_level([](const std::string& level) {
    uint64_t seed = 1;
    for (const Sizes& s : ragged_sizes()) {
      const Case c = random_case(s, seed, torch::kFloat, seed % 3 > 0);
      const PackedExperts packed = pack_expert_weights(c.weights, WeightType::fp32);
      EXPECT_TRUE(torch::equal(packed_experts(c.tokens, c.rows, packed, Activation::gelu),
                               expert_mlp(c.tokens, c.rows, c.weights, {})))
          << level << ", case " << seed;
      ++seed;
    }
  });
}

// Packed at one level, read at another.
TEST(PackedExperts, ComputeAtEveryLevelWhereverTheyWerePacked) {
  const Case c = random_case({50, 3, 2, 100, 800}, 5);
  for (const WeightType type : kTypes) {
    std::vector<PackedExperts> packed;
    at_each_level([&](const std::string&) { packed.push_back(pack_expert_weights(c.weights, type)); });
    at_each_level([&](const std::string& level) {
      const at::Tensor own = packed_experts(c.tokens, c.rows, pack_expert_weights(c.weights, type), Activation::gelu);
      for (const PackedExperts& other : packed) {
        const at::Tensor got = packed_experts(c.tokens, c.rows, other, Activation::gelu);
        if (test::rounds_rows(type))
          expect_close(got, c, other, Activation::gelu, level);
        else
          EXPECT_TRUE(torch::allclose(got, own, 1e-5, 1e-5)) << level;
      }
    });
  }
}

TEST(PackedExperts, AllTokensMayGoToOneExpert) {
  at_each_level([](const std::string& level) {
    Case c = random_case({200, 6, 1, 40, 450}, 3);
    c.rows = route(torch::full({200, 1}, 4, torch::kLong), torch::ones({200}, torch::kBool), 6, 5, torch::kFloat);
    for (const WeightType type : kTypes) {
      const PackedExperts packed = pack_expert_weights(c.weights, type);
      expect_close(packed_experts(c.tokens, c.rows, packed, Activation::gelu), c, packed, Activation::gelu, level);
    }
  });
}

TEST(PackedExperts, HaveTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  at_each_level([](const std::string& level) {
    for (const Sizes& s :
         {Sizes{300, 5, 2, 64, 800}, Sizes{7, 3, 2, 384, 1536}, Sizes{2000, 80, 1, 16, 24}, Sizes{50, 1, 1, 64, 256}})
      for (const WeightType type : kTypes) {
        const Case c = random_case(s, 11);
        const PackedExperts packed = pack_expert_weights(c.weights, type);
        at::set_num_threads(1);
        const at::Tensor one = packed_experts(c.tokens, c.rows, packed, Activation::gelu);
        for (const int n : {2, 4}) {
          at::set_num_threads(n);
          EXPECT_TRUE(torch::equal(one, packed_experts(c.tokens, c.rows, packed, Activation::gelu)))
              << level << " " << n;
        }
      }
  });
  at::set_num_threads(threads);
}

TEST(PackedExperts, WidthsMayBeZero) {
  at_each_level([](const std::string& level) {
    for (const Sizes& s : {Sizes{7, 3, 2, 6, 0}, {7, 3, 2, 0, 6}, {7, 3, 2, 0, 0}})
      for (const WeightType type : kTypes) {
        const Case c = random_case(s, 5);
        const PackedExperts packed = pack_expert_weights(c.weights, type);
        check_packed(packed);
        EXPECT_TRUE(torch::equal(packed_experts(c.tokens, c.rows, packed, Activation::gelu),
                                 expert_mlp(c.tokens, c.rows, c.weights, {})))
            << level;
        PackedExperts in_panels = packed;
        in_panels.order = PackOrder::panels;
        in_panels.storage = torch::empty({s.experts, 0}, torch::kByte);
        EXPECT_THROW(check_packed(in_panels), Error) << level;
      }
  });
}

// Against the reference in fp64. Tokens that go to other experts keep their bits.
TEST(PackedExperts, NanAndInfiniteWeightsShowInTheAnswer) {
  at_each_level([](const std::string& level) {
    for (const WeightType type : kTypes)
      for (const double poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
        for (const bool in_second : {false, true}) {
          Case c = random_case({40, 3, 2, 33, 70}, 9);
          c.rows = route(torch::arange(40).unsqueeze(1) % 3, torch::ones({40}, torch::kBool), 3, 5, torch::kFloat);
          const at::Tensor clean =
              packed_experts(c.tokens, c.rows, pack_expert_weights(c.weights, type), Activation::gelu);
          (in_second ? c.weights.w2 : c.weights.w1)[1][20][10] = poison;
          const at::Tensor want = ref::expert_mlp_forward(
              as_double(c.tokens), {c.rows.map, c.rows.offsets, as_double(c.rows.gate)},
              {as_double(c.weights.w1), as_double(c.weights.b1), as_double(c.weights.w2), as_double(c.weights.b2)},
              Activation::gelu, nullptr);
          const at::Tensor got =
              packed_experts(c.tokens, c.rows, pack_expert_weights(c.weights, type), Activation::gelu);
          EXPECT_FALSE(want[1].isfinite().all().item<bool>());
          EXPECT_TRUE((want.isfinite() | got.isfinite().logical_not()).all().item<bool>()) << level << " " << poison;
          EXPECT_TRUE((want.isnan().logical_not() | got.isnan()).all().item<bool>()) << level << " " << poison;
          for (int64_t j = 0; j < 40; ++j) EXPECT_TRUE(j % 3 == 1 || torch::equal(got[j], clean[j])) << level << j;
        }
  });
}

TEST(PackedExperts, NanAndInfinityStayWithTheirToken) {
  at_each_level([](const std::string& level) {
    for (const WeightType type : kTypes) {
      Case c = random_case({40, 3, 2, 33, 70}, 9);
      c.rows = route(torch::arange(80).reshape({40, 2}) % 3, torch::ones({80}, torch::kBool), 3, 5, torch::kFloat);
      const PackedExperts packed = pack_expert_weights(c.weights, type);
      const at::Tensor clean = packed_experts(c.tokens, c.rows, packed, Activation::gelu);
      c.tokens[7][3] = std::numeric_limits<float>::quiet_NaN();
      c.tokens[20][5] = std::numeric_limits<float>::infinity();
      const at::Tensor out = packed_experts(c.tokens, c.rows, packed, Activation::gelu);
      EXPECT_TRUE(out[7].isnan().all().item<bool>()) << level;
      EXPECT_FALSE(out[20].isfinite().any().item<bool>()) << level;
      for (int64_t j = 0; j < 40; ++j) EXPECT_TRUE(j == 7 || j == 20 || torch::equal(out[j], clean[j])) << level << j;
    }
  });
}

// bf16 keeps 8 significant bits: rounding to nearest errs by half a unit of the last one, 2^-8 of the value at most.
// int8: half a step of max|w| / 127 at most.
TEST(PackedExperts, RoundEachWeightByNoMoreThanTheirTypeDoes) {
  at_each_level([](const std::string& level) {
    const Case c = random_case({1, 3, 1, 40, 60}, 5);
    const ExpertMlpWeights same = unpacked_experts(pack_expert_weights(c.weights, WeightType::fp32));
    EXPECT_TRUE(torch::equal(same.w1, c.weights.w1) && torch::equal(same.w2, c.weights.w2)) << level;
    const ExpertMlpWeights half = unpacked_experts(pack_expert_weights(c.weights, WeightType::bf16));
    EXPECT_TRUE(((half.w1 - c.weights.w1).abs() <= c.weights.w1.abs() * std::ldexp(1.0, -8)).all().item<bool>());
    const ExpertMlpWeights bytes = unpacked_experts(pack_expert_weights(c.weights, WeightType::int8));
    for (const auto& [got, want] : {std::pair{bytes.w1, c.weights.w1}, std::pair{bytes.w2, c.weights.w2}})
      EXPECT_TRUE(((got - want).abs() <= want.abs().amax(1, true) * (0.5001 / 127)).all().item<bool>()) << level;
  });
}

TEST(PackedExperts, UnpackTheSameWeightsAtEveryLevel) {
  for (const Sizes& s : ragged_sizes())
    for (const WeightType type : kTypes) {
      const Case c = random_case(s, 6);
      std::vector<ExpertMlpWeights> unpacked;
      at_each_level(
          [&](const std::string&) { unpacked.push_back(unpacked_experts(pack_expert_weights(c.weights, type))); });
      for (const ExpertMlpWeights& w : unpacked) {
        EXPECT_TRUE(torch::equal(w.w1, unpacked[0].w1) && torch::equal(w.w2, unpacked[0].w2));
        EXPECT_TRUE(torch::equal(w.b1, c.weights.b1) && torch::equal(w.b2, c.weights.b2));
      }
    }
}

TEST(PackedExperts, ComputeAtAnotherLevelThanTheyWerePackedAt) {
  const Case c = random_case({30, 4, 2, 50, 90}, 12);
  for (const WeightType type : kTypes)
    at_each_level([&](const std::string& packed_at) {
      const PackedExperts packed = pack_expert_weights(c.weights, type);
      at_each_level([&](const std::string& level) {
        const at::Tensor got = packed_experts(c.tokens, c.rows, packed, Activation::gelu);
        expect_close(got, c, packed, Activation::gelu, cat("packed at ", packed_at, ", ", level));
      });
    });
}

// Tiles replace the plain weights, 2 bytes or 1 for each of the 2 D F of an expert.
TEST(PackedExperts, LieOnceInMemory) {
  const Case c = random_case({1, 3, 1, 128, 192}, 5);
  at_each_level([&](const std::string& level) {
    for (const WeightType type : kTypes) {
      const PackedExperts packed = pack_expert_weights(c.weights, type);
      int64_t bytes = 0;
      for (const at::Tensor& t : {packed.weights.w1, packed.weights.w2, packed.storage})
        if (t.defined()) bytes += t.numel() * t.element_size();
      EXPECT_EQ(bytes, 3 * 2 * 128 * 192 * (type == WeightType::fp32 ? 4 : type == WeightType::bf16 ? 2 : 1)) << level;
    }
  });
}

// torch's bf16 products use the same tile registers.
TEST(PackedExperts, LeaveTorchsProductsAsTheyWere) {
  const Case c = random_case({50, 3, 1, 64, 96}, 5);
  const at::Tensor a = test::random_tensor({200, 300}, 1, torch::kBFloat16);
  const at::Tensor b = test::random_tensor({300, 100}, 2, torch::kBFloat16);
  const at::Tensor pre_activation = torch::matmul(a, b);
  for (const WeightType type : kTypes) {
    const PackedExperts packed = pack_expert_weights(c.weights, type);
    const at::Tensor first = packed_experts(c.tokens, c.rows, packed, Activation::gelu);
    EXPECT_TRUE(torch::equal(torch::matmul(a, b), pre_activation));
    EXPECT_TRUE(torch::equal(packed_experts(c.tokens, c.rows, packed, Activation::gelu), first));
  }
}

// Tokens, gates, offsets and the map of rows, and the weights that are to be packed.
TEST(PackedExperts, StridedAndMisalignedArgumentsGiveTheSameBits) {
  const Case c = random_case({30, 3, 2, 64, 96}, 10);
  using Layout = at::Tensor (*)(const at::Tensor&);
  at_each_level([&](const std::string& level) {
    for (const WeightType type : kTypes) {
      const at::Tensor want = packed_experts(c.tokens, c.rows, pack_expert_weights(c.weights, type), Activation::gelu);
      for (const Layout layout : {test::strided, test::misaligned}) {
        const ExpertMlpWeights& w = c.weights;
        const PackedExperts packed =
            pack_expert_weights({layout(w.w1), layout(w.b1), layout(w.w2), layout(w.b2)}, type);
        const RowMap& map = c.rows.map;
        const ExpertRows rows{{map.tokens, layout(map.row_token), layout(map.token_rows), layout(map.token_offsets)},
                              layout(c.rows.offsets),
                              layout(c.rows.gate)};
        EXPECT_FALSE(layout == test::strided && layout(w.b1).is_contiguous());
        EXPECT_TRUE(torch::equal(packed_experts(layout(c.tokens), rows, packed, Activation::gelu), want)) << level;
        const ExpertMlpWeights unpacked = unpacked_experts(packed),
                               plain = unpacked_experts(pack_expert_weights(w, type));
        EXPECT_TRUE(torch::equal(unpacked.w1, plain.w1) && torch::equal(unpacked.b1, w.b1)) << level;
        EXPECT_TRUE(torch::equal(unpacked.w2, plain.w2) && torch::equal(unpacked.b2, w.b2)) << level;
      }
    }
  });
}

TEST(PackedExperts, WrongArgumentsAreRefused) {
  const Case c = random_case({30, 3, 2, 24, 50}, 10);
  const ExpertMlpWeights& w = c.weights;
  EXPECT_THROW(pack_expert_weights({w.w1, w.b1, w.w1, w.b2}, WeightType::bf16), Error);
  EXPECT_THROW(pack_expert_weights({w.w1.to(torch::kDouble), w.b1, w.w2, w.b2}, WeightType::bf16), Error);
  const PackedExperts packed = pack_expert_weights(w, WeightType::int8);
  EXPECT_THROW(packed_experts(c.tokens.to(torch::kDouble), c.rows, packed, Activation::gelu), Error);
  EXPECT_THROW(packed_experts(c.tokens.narrow(1, 0, 23), c.rows, packed, Activation::gelu), Error);
  EXPECT_THROW(packed_experts(c.tokens.narrow(0, 0, 29), c.rows, packed, Activation::gelu), Error);
}

TEST(PackedExperts, WhatComesFromElsewhereIsChecked) {
  const Case c = random_case({30, 3, 2, 24, 50}, 10);
  at_each_level([&](const std::string& level) {
    for (const WeightType type : kTypes) {
      const PackedExperts packed = pack_expert_weights(c.weights, type);
      check_packed(packed);
      const auto refuses = [&](const char* what, const auto& spoil) {
        PackedExperts other = packed;
        spoil(other);
        EXPECT_THROW(check_packed(other), Error) << level << ", " << what;
      };
      refuses("no experts", [](PackedExperts& h) { h.experts = 0; });
      refuses("other experts", [](PackedExperts& h) { h.experts = 4; });
      refuses("a size whose bytes overflow", [](PackedExperts& h) { h.hidden = int64_t{1} << 61; });
      refuses("another width", [](PackedExperts& h) { h.width = 48; });
      refuses("b1", [](PackedExperts& h) { h.weights.b1 = h.weights.b1.to(torch::kDouble); });
      refuses("b2", [](PackedExperts& h) { h.weights.b2 = h.weights.b2.narrow(1, 0, 23); });
      refuses("another device", [](PackedExperts& h) { h.weights.b2 = h.weights.b2.to(torch::kMeta); });
      refuses("strides", [](PackedExperts& h) { h.weights.b1 = h.weights.b1.t().contiguous().t(); });
      if (packed.order == PackOrder::plain)
        refuses("w2", [](PackedExperts& h) { h.weights.w2 = h.weights.w1; });
      else
        refuses("bytes",
                [](PackedExperts& h) { h.storage = h.storage.narrow(1, 0, h.storage.size(1) - 1).contiguous(); });
      if (type != WeightType::bf16)
        refuses("another type in tiles", [](PackedExperts& h) { h.order = PackOrder::tiles; });
      if (type != WeightType::int8) continue;
      refuses("scale1", [](PackedExperts& h) { h.scale1 = at::Tensor(); });
      refuses("scale2", [](PackedExperts& h) { h.scale2 = h.scale1; });
    }
  });
}

}  // namespace sparsight::packed_experts_test
