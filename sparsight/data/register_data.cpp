#include "sparsight/data/register_data.h"

#include "sparsight/data/sets/celeba.h"
#include "sparsight/data/sets/cifar.h"
#include "sparsight/data/sets/cifar_noise.h"
#include "sparsight/data/sets/cifar_vehicles.h"
#include "sparsight/data/sets/composite.h"
#include "sparsight/data/sets/folder.h"
#include "sparsight/data/sets/glyphs.h"
#include "sparsight/data/sets/manifest.h"
#include "sparsight/data/sets/mnist.h"
#include "sparsight/data/sets/npy.h"
#include "sparsight/data/sets/planted.h"

namespace sparsight {

Registry<DataSplits, DataContext>& data_sets() {
  static auto registry = [] {
    Registry<DataSplits, DataContext> sets("data set");
    sets.add<GlyphsOptions>("glyphs", "embedded: procedurally drawn glyphs in frames, in four manners", make_glyphs);
    sets.add<MnistOptions>("mnist", "MNIST, Fashion-MNIST, KMNIST: idx files", make_mnist);
    sets.add<Cifar10Options>("cifar10", "CIFAR-10, binary version", make_cifar10);
    sets.add<Cifar100Options>("cifar100", "CIFAR-100, binary version, fine or coarse labels", make_cifar100);
    sets.add<CelebaOptions>("celeba", "CelebA in its official layout: smiling, alone, with hair or with eyeglasses",
                            make_celeba);
    sets.add<CompositeOptions>("composite", "grids of MNIST digits (or glyphs), of which one makes the label",
                               make_composite);
    sets.add<CifarNoiseOptions>("cifar_noise", "CIFAR-10 (or drawn pictures) shrunk and pasted onto photographs",
                                make_cifar_noise);
    sets.add<CifarVehiclesOptions>("cifar_vehicles", "a vehicle of CIFAR-10 (or drawn) among three animals",
                                   make_cifar_vehicles);
    sets.add<PlantedOptions>(
        "planted", "drawn: grids of glyphs, of which one makes the label, and paper that may go along", make_planted);
    sets.add<FolderOptions>("folder", "image files in class/image", make_folder);
    sets.add<DomainFolderOptions>("domain_folder", "image files in domain/class/image", make_domain_folder);
    sets.add<ManifestOptions>("manifest", "image files that a CSV file lists", make_manifest);
    sets.add<NpyOptions>("npy", "arrays in .npy files", make_npy);
    return sets;
  }();
  return registry;
}

}  // namespace sparsight
