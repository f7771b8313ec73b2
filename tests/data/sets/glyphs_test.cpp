#include "sparsight/data/sets/glyphs.h"

#include <algorithm>
#include <array>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "sparsight/core/random.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/glyph_painter.h"

namespace sparsight::glyphs_test {
namespace {

DataSplits glyphs(const Json& settings) { return data_sets().make("glyphs", settings, "data", DataContext{}); }

std::vector<uint8_t> bytes(const at::Tensor& image) {
  const uint8_t* data = image.const_data_ptr<uint8_t>();
  return {data, data + image.numel()};
}

uint64_t fingerprint(const DataSet& set) {
  uint64_t hash = 0;
  for (int64_t i = 0; i < set.size(); ++i)
    for (const uint8_t byte : bytes(set.get(i).image)) hash = hash_combine(hash, byte);
  return hash;
}

double mean_level(const DataSet& set) {
  double sum = 0, count = 0;
  for (int64_t i = 0; i < set.size(); ++i) {
    for (const uint8_t byte : bytes(set.get(i).image)) sum += byte;
    count += static_cast<double>(set.get(i).image.numel());
  }
  return sum / count;
}

std::string error_text(const Json& settings) {
  try {
    glyphs(settings);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Glyphs, DescribesItself) {
  const DataSplits splits = glyphs({{"classes", 5}, {"side", 20}, {"channels", 1}, {"train", 40}, {"test", 7}});
  const DataInfo& info = splits.train->info();
  EXPECT_EQ(info.classes.size(), 5u);
  EXPECT_EQ(info.super_classes, (std::vector<std::string>{"circle", "square", "rails", "corners"}));
  EXPECT_EQ(info.super_class_of, (std::vector<int64_t>{0, 1, 2, 3, 0}));
  EXPECT_EQ(splits.test->size(), 7);
  const Sample sample = splits.train->get(3);
  EXPECT_EQ(sample.image.sizes(), (std::vector<int64_t>{1, 20, 20}));
  EXPECT_EQ(sample.image.scalar_type(), at::kByte);
  EXPECT_EQ(sample.id, "train/3");
}

TEST(Glyphs, LabelsAndDomainsAreBalanced) {
  const DataSplits splits = glyphs({{"classes", 6}, {"train", 240}});
  std::map<std::pair<int64_t, int64_t>, int> counts;
  for (int64_t i = 0; i < 240; ++i) ++counts[{splits.train->label(i), splits.train->domain(i)}];
  EXPECT_EQ(counts.size(), 24u);  // 6 classes in 4 domains
  for (const auto& [pair, count] : counts) EXPECT_EQ(count, 10);
  const Sample sample = splits.train->get(17);
  EXPECT_EQ(sample.label, splits.train->label(17));
  EXPECT_EQ(sample.domain, splits.train->domain(17));
}

TEST(Glyphs, PictureIsAPureFunctionOfSeedSplitAndIndex) {
  const DataSplits one = glyphs({{"train", 50}}), longer = glyphs({{"train", 90}}), other = glyphs({{"seed", 1}});
  EXPECT_EQ(bytes(one.train->get(41).image), bytes(longer.train->get(41).image));
  EXPECT_NE(bytes(one.train->get(41).image), bytes(other.train->get(41).image));
  EXPECT_NE(bytes(one.train->get(4).image), bytes(one.test->get(4).image));
  EXPECT_NE(bytes(one.train->get(4).image), bytes(one.train->get(4 + 48).image));  // same class and domain
  std::array<std::vector<uint8_t>, 3> seen;
  std::vector<std::thread> threads;
  for (auto& result : seen) threads.emplace_back([&] { result = bytes(one.train->get(41).image); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : seen) EXPECT_EQ(result, bytes(one.train->get(41).image));
}

// The same bits on every machine. The numbers were printed by this test on x86-64 with g++ 12; they change only if the
// rendering is changed deliberately, which makes it another dataset.
TEST(Glyphs, SameBitsOnEveryMachine) {
  EXPECT_EQ(fingerprint(*glyphs({{"test", 200}, {"classes", 50}}).test), 16949658546123019302u);
  EXPECT_EQ(fingerprint(*glyphs({{"test", 100}, {"side", 28}, {"channels", 1}, {"super_classes", 0}}).test),
            6021120231783853280u);
}

TEST(Glyphs, DomainsLookDifferent) {
  std::map<std::string, double> level;
  for (const char* domain : {"clean", "textured", "sketch", "inverted"})
    level[domain] = mean_level(*glyphs({{"test", 48}, {"domains", {domain}}}).test);
  EXPECT_GT(level["sketch"], level["clean"]);  // white paper and thin pencil
  EXPECT_GT(level["clean"], level["textured"] + 20);
  EXPECT_GT(level["textured"], level["inverted"] + 40);
}

// Rails are bars above and below, a cup has bars at both sides and below: the band along an edge of the pictures is
// darker than the paper where the frame has a bar. The frame is 0.84 of a 48 pixel side: its bars lie near pixel 4.
TEST(Glyphs, FrameIsVisibleWhereItsBarsAre) {
  const auto darkness = [](int frame, bool top) {  // mean over pictures of how much a band is below white
    GlyphPicture picture{&hand_made_glyphs()[0], &glyph_frames()[frame], "clean", 0};
    double sum = 0;
    for (uint64_t i = 0; i < 100; ++i) {
      GlyphCanvas canvas(48);
      paint_glyph(picture, RandomStream(0, "test", i), canvas);
      for (int along = 16; along < 32; ++along)
        for (int across = 0; across < 9; ++across)
          sum += 255 - canvas.plane(1)[top ? across * 48 + along : along * 48 + across];
    }
    return sum / (100 * 16 * 9);
  };
  const int rails = 2, cup = 5;
  EXPECT_GT(darkness(rails, true), darkness(cup, true) + 5);
  EXPECT_GT(darkness(cup, false), darkness(rails, false) + 5);
}

TEST(Glyphs, TrainAndTestDomainsCanDiffer) {
  const DataSplits splits = glyphs({{"train_domains", {"clean", "inverted"}}, {"test_domains", {"sketch"}}});
  EXPECT_EQ(splits.train->info().domains.size(), 4u);
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(splits.train->domain(i), i % 2 == 0 ? 0 : 3);
    EXPECT_EQ(splits.validation->domain(i), i % 2 == 0 ? 0 : 3);
    EXPECT_EQ(splits.test->domain(i), 2);
  }
}

TEST(Glyphs, RefusesImpossibleSettings) {
  EXPECT_NE(error_text({{"domains", {"sketsh"}}}).find("did you mean \"sketch\""), std::string::npos);
  EXPECT_NE(error_text({{"domains", Json::array()}}).find("empty"), std::string::npos);
  EXPECT_NE(error_text({{"domains", {"clean"}}, {"test_domains", {"sketch"}}}).find("data.test_domains"),
            std::string::npos);
  EXPECT_NE(error_text({{"domains", {"clean", "clean"}}}).find("twice"), std::string::npos);
  EXPECT_NE(error_text({{"channels", 2}}).find("1 or 3"), std::string::npos);
  EXPECT_NE(error_text({{"side", 8}}).find("16 to 512"), std::string::npos);
}

}  // namespace sparsight::glyphs_test
