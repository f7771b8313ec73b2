#include "sparsight/data/remote_sets.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight {
namespace {

// Bytes of the parts of the MNIST family (header and values, unpacked) and of the archives of CIFAR, with some to
// spare.
constexpr int64_t kTrainImages = 48'000'000, kTrainLabels = 100'000, kTestImages = 8'000'000, kTestLabels = 100'000;
constexpr int64_t kCifarArchive = 200'000'000;

RemoteSet mnist() {
  return {"mnist",
          "MNIST handwritten digits, 60,000 + 10,000 grey images of 28 x 28",
          "CC BY-SA 3.0; Yann LeCun, Corinna Cortes, Christopher J. C. Burges",
          "http://yann.lecun.com/exdb/mnist/",
          {"https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/",
           "http://yann.lecun.com/exdb/mnist/"},
          {{"train-images-idx3-ubyte.gz",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            {},
            kTrainImages},
           {"train-labels-idx1-ubyte.gz",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            {},
            kTrainLabels},
           {"t10k-images-idx3-ubyte.gz",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            {},
            kTestImages},
           {"t10k-labels-idx1-ubyte.gz",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            {},
            kTestLabels}}};
}

RemoteSet fashion_mnist() {
  return {"fashion-mnist",
          "Fashion-MNIST, 60,000 + 10,000 grey images of clothes, 28 x 28",
          "MIT; Zalando SE",
          "https://github.com/zalandoresearch/fashion-mnist",
          {"https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
           "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"},
          {{"train-images-idx3-ubyte.gz",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "",
            {},
            kTrainImages},
           {"train-labels-idx1-ubyte.gz",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "",
            {},
            kTrainLabels},
           {"t10k-images-idx3-ubyte.gz",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "",
            {},
            kTestImages},
           {"t10k-labels-idx1-ubyte.gz",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            "",
            {},
            kTestLabels}}};
}

RemoteSet kmnist() {
  return {"kmnist",
          "Kuzushiji-MNIST, 60,000 + 10,000 grey images of cursive Japanese characters, 28 x 28",
          "CC BY-SA 4.0; KMNIST Dataset (created by CODH), adapted from Kuzushiji Dataset (created by NIJL and others)",
          "http://codh.rois.ac.jp/kmnist/",
          {"http://codh.rois.ac.jp/kmnist/dataset/kmnist/"},
          {{"train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7", "", {}, kTrainImages},
           {"train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344", "", {}, kTrainLabels},
           {"t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7", "", {}, kTestImages},
           {"t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134", "", {}, kTestLabels}}};
}

constexpr char kCifarLicence[] =
    "no licence stated; cite A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009";

RemoteSet cifar10() {
  const std::string in = "cifar-10-batches-bin/";
  return {
      "cifar10",
      "CIFAR-10, 50,000 + 10,000 colour images of 32 x 32 in 10 classes",
      kCifarLicence,
      "https://www.cs.toronto.edu/~kriz/cifar.html",
      {"https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/"},
      {{"cifar-10-binary.tar.gz",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        "",
        {{in + "data_batch_1.bin", "data_batch_1.bin",
          "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
         {in + "data_batch_2.bin", "data_batch_2.bin",
          "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
         {in + "data_batch_3.bin", "data_batch_3.bin",
          "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
         {in + "data_batch_4.bin", "data_batch_4.bin",
          "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
         {in + "data_batch_5.bin", "data_batch_5.bin",
          "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
         {in + "test_batch.bin", "test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
         {in + "batches.meta.txt", "batches.meta.txt", ""}},
        kCifarArchive}}};
}

RemoteSet cifar100() {
  const std::string in = "cifar-100-binary/";
  return {"cifar100",
          "CIFAR-100, 50,000 + 10,000 colour images of 32 x 32 in 100 classes, 20 super-classes",
          kCifarLicence,
          "https://www.cs.toronto.edu/~kriz/cifar.html",
          {"https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/"},
          {{"cifar-100-binary.tar.gz",
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            "",
            {{in + "train.bin", "train.bin", "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"},
             {in + "test.bin", "test.bin", "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"},
             {in + "fine_label_names.txt", "fine_label_names.txt", ""},
             {in + "coarse_label_names.txt", "coarse_label_names.txt", ""}},
            kCifarArchive}}};
}

// Weights whose publishers give a checksum: the file's name ends in the first eight digits of its SHA-256, as torch.hub
// checks it.
constexpr int64_t kWeightBytes = 400'000'000;  // of the largest, ViT-B/16, 346 MB

RemoteSet weights(const std::string& name, const std::string& title, const std::string& licence,
                  const std::string& home, const std::string& base, const std::string& file) {
  const size_t dash = file.rfind('-'), dot = file.rfind('.');
  SPARSIGHT_CHECK(dash != std::string::npos && dot == dash + 9);
  return {name, title, licence, home, {base}, {{file, file.substr(dash + 1, 8), "", {}, kWeightBytes}}};
}

RemoteSet torchvision(const std::string& name, const std::string& title, const std::string& file) {
  return weights(name, title,
                 "BSD 3-Clause (torchvision); trained on ImageNet-1k, whose terms allow non-commercial research",
                 "https://pytorch.org/vision/stable/models.html", "https://download.pytorch.org/models/", file);
}

RemoteSet deit(const std::string& name, const std::string& title, const std::string& file) {
  return weights(name, title,
                 "Apache 2.0 (Meta Platforms); trained on ImageNet-1k, whose terms allow non-commercial research",
                 "https://github.com/facebookresearch/deit", "https://dl.fbaipublicfiles.com/deit/", file);
}

}  // namespace

const std::vector<RemoteSet>& remote_sets() {
  static const std::vector<RemoteSet> sets{mnist(), fashion_mnist(), kmnist(), cifar10(), cifar100()};
  return sets;
}

const std::vector<RemoteSet>& remote_weights() {
  static const std::vector<RemoteSet> all{
      torchvision("resnet18", "ResNet-18, ImageNet-1k", "resnet18-f37072fd.pth"),
      torchvision("resnet34", "ResNet-34, ImageNet-1k", "resnet34-b627a593.pth"),
      torchvision("resnet50", "ResNet-50, ImageNet-1k (the first weights, as in DomainBed)", "resnet50-0676ba61.pth"),
      torchvision("resnet50_v2", "ResNet-50, ImageNet-1k (torchvision's later recipe)", "resnet50-11ad3fa6.pth"),
      torchvision("resnet101", "ResNet-101, ImageNet-1k", "resnet101-63fe2227.pth"),
      torchvision("resnet152", "ResNet-152, ImageNet-1k", "resnet152-394f9c45.pth"),
      torchvision("vit_b_16", "ViT-B/16, ImageNet-1k", "vit_b_16-c867db91.pth"),
      deit("deit_tiny", "DeiT-Ti/16, ImageNet-1k, not distilled", "deit_tiny_patch16_224-a1311bcf.pth"),
      deit("deit_small", "DeiT-S/16, ImageNet-1k, not distilled (the start of GMoE)",
           "deit_small_patch16_224-cd65a155.pth"),
      deit("deit_base", "DeiT-B/16, ImageNet-1k, not distilled", "deit_base_patch16_224-b5f2ef4d.pth")};
  return all;
}

const RemoteSet& find_remote_set(const std::string& name) {
  static const std::vector<RemoteSet> all = [] {
    std::vector<RemoteSet> list = remote_sets();
    list.insert(list.end(), remote_weights().begin(), remote_weights().end());
    return list;
  }();
  return entry_named(name, all, "dataset to fetch");
}

std::string usual_folder(const RemoteSet& set) {
  const bool is_weights = std::ranges::find(remote_weights(), set.name, &RemoteSet::name) != remote_weights().end();
  return (is_weights ? "weights/" : "") + set.name;
}

}  // namespace sparsight
