// The verb `data` as a user runs it: its output, and one clear line and the right exit code for every bad input.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/png_write.h"
#include "tests/data/sets/set_files.h"
#include "tests/support/http_server.h"
#include "tests/support/program.h"

namespace sparsight::testing::data_test {
namespace {

ProgramResult data(std::vector<std::string> arguments, ProgramOptions options = {}) {
  arguments.insert(arguments.begin(), "data");
  options.environment.insert({"no_proxy", "127.0.0.1"});
  return run_program(std::move(arguments), std::move(options));
}

void expect_error(const ProgramResult& result, int exit_code, const std::string& part) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(says(result.err, part));
}

// A bad file: `inspect` and `verify` fail with the same message.
void expect_bad(const std::string& path, const std::string& part) {
  expect_error(data({"inspect", path}), 1, part);
  const ProgramResult verified = data({"verify", path});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_TRUE(says(verified.out + verified.err, part));
}

void expect_good(const std::string& path, const std::string& part) {
  const ProgramResult result = data({"inspect", path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(says(result.out, part));
  EXPECT_EQ(data({"verify", path, "--quiet"}).exit_code, 0);
}

}  // namespace

TEST(DataVerb, ListsSetsWithTheirLicences) {
  const ProgramResult result = data({"list"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* part : {"glyphs", "mnist", "domain_folder", "licence: CC BY-SA 3.0"})
    EXPECT_TRUE(says(result.out, part));
}

TEST(DataVerb, ShowsWhereDataGoes) {
  const TemporaryFolder folder;
  ProgramOptions options;
  options.environment = {{"SPARSIGHT_DATA", folder.path()}};
  EXPECT_TRUE(says(data({"where"}, options).out, "celeba         " + folder.path("celeba")));
  EXPECT_TRUE(says(data({"where", "mnist"}, options).out, "state:  mnist is not complete: there is no t10k-images"));
  write_mnist(folder, 20, "mnist/");
  EXPECT_TRUE(says(data({"where", "mnist"}, options).out, "state:  found, custom data: not the published files"));
  expect_error(data({"where", "mnits"}), 2, "did you mean \"mnist\"?");
}

// As published it has 9,991 pictures of 227 x 227 pixels.
TEST(DataVerb, SaysHowACopyOfPacsDiffersFromThePublishedOne) {
  const TemporaryFolder folder;
  for (const char* domain : {"art_painting", "cartoon", "photo", "sketch"})
    for (int i = 0; i < 2; ++i)
      folder.write(cat("PACS/", domain, "/dog/", i, ".png"), encode_png(at::full({3, 12, 10}, 7, at::kByte)));
  ProgramOptions options;
  options.environment = {{"SPARSIGHT_DATA", folder.path()}};
  const std::string state = data({"where", "pacs"}, options).out;
  EXPECT_TRUE(says(state, "not as published: art_painting has 2 images, not 2048, cartoon has 2 images, not 2344"));
  EXPECT_TRUE(says(state, "images have 10 x 12 pixels, not 227 x 227"));
}

TEST(DataVerb, RefusesToWriteImagesThatPngCannotHold) {
  const TemporaryFolder folder;
  write_mnist(folder, 30, "mnist/");
  const std::string made = folder.path("made");
  const ProgramResult result = data({"make", made, "--from", "domainbed", "--set", "set=colored_mnist", "--set",
                                     "root=" + folder.path("mnist"), "--set", "test_envs=[0]"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(says(result.err, "has images of 2 channels; PNG files have 1 (grey) or 3 (RGB)"));
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST(DataVerb, RefusesUnknownNames) {
  expect_error(data({"inspect", "mnits"}), 1, "\"mnits\" is neither a dataset (glyphs, mnist");
  expect_error(data({"fetch", "mnits"}), 2, "did you mean \"mnist\"?");
  expect_error(data({"inspect", "glyphs", "--set", "sides=3"}), 2, "did you mean");
  expect_error(data({"inspect", "glyphs", "--set", "side"}), 2, "--set takes key=value");
  expect_error(data({}), 2, "--help");
}

TEST(DataVerb, SaysWhenAFolderHasTheNameOfASet) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("glyphs"));
  ProgramOptions options;
  options.folder = folder.path();
  const ProgramResult result = data({"inspect", "glyphs", "--set", "train=24"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(says(result.err, "\"glyphs\" is the built-in set; for the folder of that name write ./glyphs"));
  EXPECT_FALSE(says(data({"inspect", "glyphs", "--set", "train=24"}).err, "built-in set"));
}

TEST(DataVerb, SaysWhereMissingFilesWereLookedFor) {
  const TemporaryFolder folder;
  ProgramOptions options;
  options.environment["SPARSIGHT_DATA"] = folder.path();
  expect_error(data({"inspect", "mnist"}, options), 1, "sparsight data fetch mnist");
}

TEST(DataVerb, MakesGlyphsThatCanBeReadBack) {
  const TemporaryFolder folder;
  const std::vector<std::string> small{"--set",   "train=24", "--set",   "validation=12", "--set",
                                       "test=12", "--set",    "side=16", "--quiet"};
  std::vector<std::string> make{"make", folder.path("by class")};
  make.insert(make.end(), small.begin(), small.end());
  EXPECT_EQ(data(make).exit_code, 0);
  expect_good(folder.path("by class"), "train       24 images, 16 x 16 pixels");
  make[1] = folder.path("by_domain");
  make.insert(make.end(), {"--layout", "domain"});
  EXPECT_EQ(data(make).exit_code, 0);
  expect_good(folder.path("by_domain"), "4 domains");
  expect_error(data(make), 1, "exists already");
  make[1] = folder.path("ends_in_a_slash/");
  EXPECT_EQ(data(make).exit_code, 0);
  expect_good(folder.path("ends_in_a_slash"), "4 domains");
}

TEST(DataVerb, AKilledMakeDoesNotBlockTheNext) {
  const TemporaryFolder folder;
  const auto entries = [&] { return std::distance(std::filesystem::directory_iterator(folder.path()), {}); };
  Program killed({"data", "make", folder.path("made"), "--set", "train=1000000", "--set", "side=16"});
  for (int i = 0; i < 600 && entries() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  killed.send(SIGKILL);
  EXPECT_EQ(killed.wait().exit_code, 128 + SIGKILL);
  EXPECT_EQ(entries(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder.path("made")));
  const ProgramResult next = data({"make", folder.path("made"), "--set", "train=24", "--set", "validation=12", "--set",
                                   "test=12", "--set", "side=16", "--quiet"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(entries(), 1);
  expect_good(folder.path("made"), "train       24 images");
}

TEST(DataVerb, AnErrorLeavesNoFolder) {
  const TemporaryFolder folder;
  for (const char* image : {"set/a/1.png", "set/a/2.png", "set/a/3.png"}) folder.write(image, grey_png(1));
  folder.write("set/a/4.png", "GIF89a");
  expect_error(data({"make", folder.path("made"), "--from", folder.path("set"), "--set", "validation=0.25", "--quiet"}),
               1, "4.png is a damaged GIF file");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(DataVerb, MakeMergesNoClasses) {
  const TemporaryFolder folder;
  std::string list = "path,label,split\n";
  for (const char* label : {"a/b", "a_b", "..", ".", "_.", "a%2Fb", "Cat", "cat"}) {
    list += cat("i.png,", label, ",train\ni.png,", label, ",test\n");
  }
  folder.write("i.png", grey_png(1));
  folder.write("manifest.csv", list);
  const std::vector<std::string> layouts{"class", "domain"};
  for (const std::string& layout : layouts) {
    const std::string made = folder.path(layout);
    const ProgramResult result =
        data({"make", made, "--from", folder.path("manifest.csv"), "--set", "validation=0", "--layout", layout});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(says(data({"inspect", made, "--set", "validation=0.5"}).out, ": 8 classes"));
  }
  const std::string label(300, 'x');
  folder.write("manifest.csv", "path,label,split\ni.png," + label + ",train\ni.png," + label + ",test\n");
  expect_error(
      data({"make", folder.path("long"), "--from", folder.path("manifest.csv"), "--set", "validation=0", "--quiet"}), 1,
      "takes 300 bytes; the name of a folder has at most 255");
  EXPECT_FALSE(std::filesystem::exists(folder.path("long")));
}

TEST(DataVerb, InspectsAndWritesGeneratedGroupsOfClasses) {
  const TemporaryFolder folder;
  const std::vector<std::string> sizes{"--set", "groups=3", "--set", "classes_per_group=2", "--set", "train=12",
                                       "--set", "test=6",   "--set", "validation=6",        "--set", "side=16"};
  std::vector<std::string> inspect{"inspect", "hierarchy"}, make{"make", folder.path("made"), "--from", "hierarchy"};
  inspect.insert(inspect.end(), sizes.begin(), sizes.end());
  make.insert(make.end(), sizes.begin(), sizes.end());
  const ProgramResult shown = data(inspect);
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_TRUE(says(shown.out, "hierarchy: 6 classes in 3 super-classes"));
  EXPECT_TRUE(says(shown.out, "blue disc 1"));
  const ProgramResult made = data(make);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path("made/train/red disc 0")));
  expect_good(folder.path("made"), ": 6 classes");
}

TEST(DataVerb, SaysWhichFilesAreNoImages) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 10; ++i) folder.write(cat("set/", name, "/", i, ".png"), grey_png(i));
  folder.write("set/a/x.avif", "RIFF");
  folder.write("set/b/y.pgm", "BM");
  for (const char* verb : {"inspect", "verify"}) {
    const ProgramResult result = data({verb, folder.path("set")});
    EXPECT_EQ(result.exit_code, 0) << verb;
    EXPECT_EQ(result.err,
              "warning: 2 files are not JPEG, PNG, WebP, GIF, BMP or TIFF and were ignored: a/x.avif, b/y.pgm; convert "
              "them\n")
        << verb;
  }
  folder.write("set/b/z.png", "");
  const ProgramResult result = data({"verify", folder.path("set")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result.err, "warning: 2 files are not JPEG, PNG, WebP, GIF, BMP or TIFF"));
}

TEST(DataVerb, CannotWriteWhereItMayNot) {
  expect_error(data({"make", "/proc/glyphs", "--set", "train=4"}), 1, "cannot make the folder /proc/glyphs: ");
}

TEST(DataVerb, InspectsEverySetOfFiles) {
  const TemporaryFolder folder;
  write_mnist(folder, 20, "mnist/");
  expect_good(folder.path("mnist"), "mnist: 10 classes, grey");
  folder.write("list/a.png", grey_png(1));
  folder.write("list/b.png", grey_png(2));
  folder.write("list/manifest.csv", "path,label,split\na.png,cat,train\nb.png,dog,test\n");
  const ProgramResult manifest = data({"inspect", folder.path("list/manifest.csv"), "--set", "validation=0"});
  EXPECT_TRUE(says(manifest.out, "manifest: 2 classes, RGB"));
}

TEST(DataVerbBadInput, Idx) {
  const TemporaryFolder folder;
  const std::string file = idx_file({2, 1, 3}, "abcdef");
  expect_good(folder.write("good-ubyte", file), "idx, Byte [2, 1, 3]");
  expect_bad(folder.write("short-ubyte", file.substr(0, 20)), "is cut off: its header promises 22 bytes, it has 20");
  expect_bad(folder.write("long-ubyte", file + "x"), "holds more than the 22 bytes");
  expect_bad(folder.write("early-ubyte.gz", gzip(file).substr(0, 20)), "the gzip stream ends early");
  expect_bad(folder.write("magic-ubyte", "xx" + file), "is not an idx file");
  expect_bad(folder.write("empty-ubyte", ""), "has 0 bytes");
  expect_bad(folder.write("huge-ubyte", idx_file({~0u, ~0u, ~0u, ~0u}, "")), "claims more than");
  write_mnist(folder, 20, "mnist/");
  folder.write("mnist/t10k-labels-idx1-ubyte", idx_file({20}, std::string(19, '\1') + '\x0B'));
  expect_bad(folder.path("mnist"), "t10k-labels-idx1-ubyte: image 19 has label 11; the 10 classes are 0 to 9");
}

TEST(DataVerbBadInput, Cifar) {
  const TemporaryFolder folder;
  expect_good(folder.write("test_batch.bin", cifar_record("\1", 3)), "1 CIFAR records with 1 label");
  expect_bad(folder.write("short.bin", cifar_record("\1", 3).substr(0, 3000)), "not a whole number of");
  expect_bad(folder.write("long.bin", cifar_record("\1", 3) + "xxx"), "not a whole number of");
  expect_bad(folder.write("empty.bin", ""), "has 0 bytes");
  folder.write("c10/data_batch_1.bin", cifar_record("\x0A", 3));
  expect_bad(folder.path("c10"), "data_batch_1.bin: image 0 has label 10; the 10 classes are 0 to 9");
}

TEST(DataVerbBadInput, Npy) {
  const TemporaryFolder folder;
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}";
  expect_good(folder.write("good.npy", npy_file(header, "abcdef")), "npy, Byte [2, 3]");
  expect_bad(folder.write("short.npy", npy_file(header, "abc")), "is cut off");
  expect_bad(folder.write("long.npy", npy_file(header, "abcdefg")), "holds more than");
  expect_bad(folder.write("magic.npy", "xxxxxxxxxxxxxxxx"), "is not an npy file");
  expect_bad(folder.write("header.npy", npy_file(header, "").substr(0, 30)), "the npy header claims");
  expect_bad(folder.write("empty.npy", ""), "is not an npy file");
}

TEST(DataVerbBadInput, Images) {
  const TemporaryFolder folder;
  const std::string jpeg = golden_image("rgb.jpg"), png = golden_image("rgb.png");
  expect_bad(folder.write("empty.jpg", ""), "is empty (0 bytes)");
  expect_bad(folder.write("empty.png", ""), "is empty (0 bytes)");
  expect_bad(folder.write("cut.jpg", jpeg.substr(0, jpeg.size() / 2)), "cut.jpg is a damaged");
  expect_bad(folder.write("cut.png", png.substr(0, png.size() / 2)), "PNG file (the file ends early)");
  std::string corrupt = png;
  corrupt[60] = static_cast<char>(corrupt[60] ^ 0x55);
  expect_bad(folder.write("corrupt.png", corrupt), "PNG file (");
  corrupt = jpeg;
  corrupt.replace(2, 40, std::string(40, 'x'));
  expect_bad(folder.write("corrupt.jpg", corrupt), "JPEG");
  expect_bad(folder.write("other.jpg", "....ftypavif"),
             "is an AVIF or HEIF file; images are read as JPEG, PNG, WebP, GIF, BMP or TIFF");
  expect_bad(folder.write("bomb.png", png_file(30000, 30000, 8, 2, "")), "30000 x 30000 pixels; at most 67108864");
  expect_good(folder.write("wide.png", png_file(30000, 3, 8, 0, std::string(3 * 30001, '\0'))),
              "30000 x 3 pixels, grey");
  expect_good(folder.write("one.png", png_file(1, 1, 8, 2, std::string(4, '\0'))), "1 x 1 pixels, RGB");
  expect_good(folder.write("cmyk.jpg", golden_image("cmyk.jpg")), "11 x 7 pixels, RGB");
}

TEST(DataVerbBadInput, FoldersAndManifests) {
  const TemporaryFolder folder;
  for (int i = 0; i < 10; ++i) folder.write("good/caf\xE9/" + std::to_string(i) + "\xFF.png", grey_png(i));
  expect_good(folder.path("good"), "caf\\xe9");
  std::filesystem::create_directory(folder.path("good/void"));
  expect_bad(folder.path("good"), "/void has no images");
  std::filesystem::create_directory(folder.path("nothing"));
  expect_bad(folder.path("nothing"), "has no class folders");
  expect_bad(folder.write("bad.csv", "path,label\nx.png\n"), "bad.csv:2: 1 fields, the first line names 2");
  expect_bad(folder.write("range.csv", "path,label\nx.png,-4\n"), "range.csv:2: label -4 is out of range");
}

TEST(DataVerbBadInput, VerifyListsEveryProblem) {
  const TemporaryFolder folder;
  for (int i = 0; i < 8; ++i) folder.write("set/a/" + std::to_string(i) + ".png", grey_png(i));
  folder.write("set/a/x.png", "");
  folder.write("set/a/y.jpg", "GIF89a");
  std::filesystem::create_directory(folder.path("set/b"));
  folder.write("set/SHA256SUMS", std::string(64, '0') + "  list.txt\n");
  folder.write("set/list.txt", "a");
  const ProgramResult result = data({"verify", folder.path("set")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 4) << result.out;
  for (const char* part :
       {"/b has no images", "x.png is empty", "y.jpg is a damaged GIF", "list.txt has sha256 ca978112ca1bbdca"})
    EXPECT_TRUE(says(result.out, part));
  EXPECT_TRUE(says(result.err, "4 problems, 8 images are valid"));
}

// The time that 4,000 photographs take is enough for a signal.
TEST(DataVerb, AnInterruptedVerifySaysHowFarItCame) {
  const TemporaryFolder folder;
  folder.write("set/a/0.png", encode_png(at::full({3, 1500, 1500}, 7, at::kByte)));
  folder.write("set/a/bad.png", "");
  for (int i = 1; i < 4000; ++i)
    std::filesystem::create_hard_link(folder.path("set/a/0.png"), folder.path("set/a/" + std::to_string(i) + ".png"));
  Program program({"data", "verify", folder.path("set")});
  std::this_thread::sleep_for(std::chrono::seconds(3));
  program.send(SIGINT);
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result.err, folder.path("set") + ": interrupted after "));
  EXPECT_TRUE(says(result.err, "are valid; run the same command again to look at all of them"));
  EXPECT_EQ(result.out.find("interrupted"), std::string::npos) << result.out;
  EXPECT_EQ(result.err.find("4000 are valid"), std::string::npos) << result.err;
}

TEST(DataFetchVerb, KeepsNothingThatIsNotThePublishedFile) {
  HttpServer server;
  const TemporaryFolder folder;
  const std::string first = "/train-images-idx3-ubyte.gz";
  server.answer(first, {{"not MNIST"}});
  const ProgramResult result = data({"fetch", "mnist", "--to", folder.path("m"), "--mirror", server.address("")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result.err, "licence: CC BY-SA 3.0"));
  EXPECT_TRUE(says(result.err, "its file has sha256"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("m")));
  expect_error(data({"fetch", "mnist", "--to", folder.path("m"), "--mirror", server.address("/none"), "--quiet"}), 1,
               "HTTP status 404");
}

TEST(DataFetchVerb, FetchesAndVerifiesMnist) {
  const char* real = std::getenv("SPARSIGHT_DATA");
  if (!real || !std::filesystem::exists(std::string(real) + "/mnist/train-images-idx3-ubyte.gz"))
    GTEST_SKIP() << "needs MNIST below SPARSIGHT_DATA";
  HttpServer server;
  const TemporaryFolder folder;
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                           "t10k-labels-idx1-ubyte.gz"}) {
    const Bytes bytes = read_bytes(std::string(real) + "/mnist/" + name);
    const std::string body(bytes.begin(), bytes.end());
    server.answer(std::string("/") + name, {{body, 200, 1000}, {body}});
  }
  const ProgramResult fetched = data({"fetch", "mnist", "--to", folder.path("mnist"), "--mirror", server.address("")});
  EXPECT_EQ(fetched.exit_code, 0) << fetched.err;
  const ProgramResult verified = data({"verify", folder.path("mnist")});
  EXPECT_TRUE(says(verified.out, "70000 images are valid, 4 files match their checksums")) << verified.err;
  EXPECT_EQ(data({"fetch", "mnist", "--to", folder.path("copy"), "--from", folder.path("mnist")}).exit_code, 0);
}

}  // namespace sparsight::testing::data_test
