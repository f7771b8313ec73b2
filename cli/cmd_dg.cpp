#include "cli/cmd_dg.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

constexpr int64_t kMost = 1'000'000'000;

CLI::App* add_part(CLI::App& verb, const std::string& name, const std::string& summary, const std::string& examples) {
  return add_verb(verb, name, summary, examples);
}

void add_set_option(CLI::App& verb, std::string& set) {
  verb.add_option("--dataset", set,
                  "rotated_mnist, colored_mnist, pacs, vlcs, office_home, terra_incognita, domain_net, sviro, cub_dg, "
                  "wilds_camelyon, wilds_fmow, or folder: any domain/class/image")
      ->capture_default_str()
      ->type_name("NAME");
}

void add_run_options(CLI::App& verb, DgRunArguments& run) {
  add_set_option(verb, run.set);
  verb.add_option("--data", run.data, "Folder of the dataset (default: its name below SPARSIGHT_DATA or data/)")
      ->type_name("FOLDER");
  verb.add_option("--model", run.model, "mnist_cnn, resnet18, resnet50, resnet101, vit, gmoe, gmoe_parity (default: DomainBed's)")
      ->type_name("NAME");
  verb.add_option("--steps", run.steps, "Updates (default: 5001, as published)")
      ->check(CLI::Range(int64_t{1}, kMost))
      ->type_name("N");
  verb.add_option("--eval-every", run.eval_every, "Updates between evaluations (default: 300, or 100 for MNIST)")
      ->check(CLI::Range(int64_t{1}, kMost))
      ->type_name("N");
  verb.add_option("--image-size", run.image_size, "Side to which images are cropped and resized")
      ->check(CLI::Range(int64_t{8}, int64_t{4096}))
      ->capture_default_str()
      ->type_name("PIXELS");
  verb.add_option("--set", run.overrides, "Override a setting of the configuration; may be repeated")
      ->type_name("SECTION.KEY=VALUE ...");
}

void add_seed_options(CLI::App& verb, int64_t& trial, int64_t& seed) {
  verb.add_option("--trial", trial, "Seed of the trial: the splits of the data")
      ->check(CLI::Range(int64_t{0}, kMost))
      ->capture_default_str()
      ->type_name("N");
  verb.add_option("--hparams-seed", seed, "0: default hyper-parameters; else samples them from their ranges")
      ->check(CLI::Range(int64_t{0}, kMost))
      ->capture_default_str()
      ->type_name("N");
}

void add_hparams(CLI::App& dg) {
  const auto arguments = std::make_shared<DgHparamsArguments>();
  CLI::App* verb = add_part(dg, "hparams", "Print an algorithm's hyper-parameters: defaults, ranges, samples",
                            "sparsight dg hparams irm --dataset pacs\n"
                            "sparsight dg hparams dann --dataset pacs --hparams-seed 3 --trial 1");
  verb->add_option("algorithm", arguments->algorithm, "Name of the algorithm")->capture_default_str();
  add_set_option(*verb, arguments->set);
  add_seed_options(*verb, arguments->trial, arguments->seed);
  verb->add_flag("--json", arguments->json, "Print one JSON object");
  verb->callback([arguments] { run_dg_hparams(*arguments); });
}

void add_dg_train(CLI::App& dg) {
  const auto arguments = std::make_shared<DgTrainArguments>();
  CLI::App* verb =
      add_part(dg, "train", "Train on all environments but those for testing, and evaluate on every one",
               "sparsight dg train --dataset rotated_mnist --test-envs 0\n"
               "sparsight dg train --dataset pacs --algorithm coral --model gmoe --test-envs 2 --out runs/photo\n"
               "sparsight dg train --dataset folder --data photos --test-envs 1 --model vit");
  verb->add_option("--algorithm", arguments->algorithm, "How to train: sparsight config docs lists them")
      ->capture_default_str()
      ->type_name("NAME");
  verb->add_option("--test-envs", arguments->test_envs, "Environments kept for testing, by number")
      ->delimiter(',')
      ->capture_default_str()
      ->type_name("N");
  add_seed_options(*verb, arguments->trial, arguments->seed);
  add_run_options(*verb, arguments->run);
  verb->add_option("--out", arguments->out, "Run folder; a run that was stopped goes on there (default: runs/dg/NAME)")
      ->type_name("DIR");
  verb->callback([arguments] { run_dg_train(*arguments); });
}

void add_sweep(CLI::App& dg) {
  const auto arguments = std::make_shared<DgSweepArguments>();
  CLI::App* verb =
      add_part(dg, "sweep", "Run all test environments, hyper-parameter seeds and trials; resumes what is there",
               "sparsight dg sweep --dataset pacs --plan\n"
               "sparsight dg sweep --dataset rotated_mnist --algorithms erm,irm --hparams 1 --no-pairs "
               "--out runs/sweep\n"
               "sparsight dg sweep --dataset pacs --models resnet50,vit,gmoe --hparams 1 --out runs/models\n"
               "sparsight dg sweep --dataset pacs --out runs/sweep --slurm sweep.sh && sbatch sweep.sh");
  verb->add_option("--algorithms", arguments->algorithms, "Algorithms, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--models", arguments->models, "Models to compare, separated by commas, instead of --model")
      ->delimiter(',')
      ->type_name("NAME ...");
  verb->add_option("--trials", arguments->trials, "Trials")
      ->check(CLI::Range(int64_t{1}, kMost))
      ->capture_default_str();
  verb->add_option("--hparams", arguments->hparams, "Hyper-parameter seeds; the first is the defaults")
      ->check(CLI::Range(int64_t{1}, kMost))
      ->capture_default_str();
  verb->add_flag("--no-pairs", arguments->no_pairs,
                 "Only single test environments; leave-one-domain-out selection needs pairs");
  add_run_options(*verb, arguments->run);
  verb->add_option("--out", arguments->out, "Folder of the sweep")->type_name("DIR");
  verb->add_option("--task", arguments->task, "Only the jobs of one task of a job array: INDEX/COUNT")
      ->type_name("I/N");
  CLI::Option* slurm = verb->add_option("--slurm", arguments->slurm,
                                        "Run nothing; write an sbatch script whose array tasks do the remaining runs")
                           ->type_name("FILE");
  verb->add_option("--tasks", arguments->tasks, "Maximum number of tasks in that array")
      ->needs(slurm)
      ->check(CLI::Range(int64_t{1}, kMost))
      ->capture_default_str()
      ->type_name("N");
  verb->add_flag("--plan", arguments->plan, "Print how many runs there are and how long they may take, and stop");
  verb->callback([arguments] { run_dg_sweep(*arguments); });
}

void add_table(CLI::App& dg) {
  const auto arguments = std::make_shared<DgTableArguments>();
  CLI::App* verb = add_part(dg, "table", "Select models and print accuracies by test environment, as DomainBed does",
                            "sparsight dg table runs/sweep\n"
                            "sparsight dg table runs/sweep --format latex\n"
                            "sparsight dg table path/to/domainbed/sweep --published");
  verb->add_option("folder", arguments->folder, "Folder of a sweep or of runs, also DomainBed's own")->required();
  verb->add_option("--format", arguments->format, "Format of the tables")
      ->check(CLI::IsMember({"text", "markdown", "csv", "latex", "html"}))
      ->capture_default_str();
  verb->add_flag("--published", arguments->published, "Published averages beside them");
  verb->callback([arguments] { run_dg_table(*arguments); });
}

void add_cub_dg(CLI::App& dg) {
  const auto arguments = std::make_shared<DgCubArguments>();
  CLI::App* verb =
      add_part(dg, "cub-dg", "Make the dataset cub_dg of CUB-200-2011 and three stylised copies of it",
               "sparsight dg cub-dg CUB_200_2011 --candy candy --mosaic mosaic --udnie udnie --out data/CUB_DG");
  verb->add_option("cub", arguments->cub, "Folder of CUB-200-2011: images/ and its text files")
      ->required()
      ->type_name("FOLDER");
  const std::pair<const char*, std::string*> copies[] = {
      {"--candy", &arguments->candy}, {"--mosaic", &arguments->mosaic}, {"--udnie", &arguments->udnie}};
  for (const auto& [name, folder] : copies)
    verb->add_option(name, *folder, "Folder of the copies in this style: class/file, named as in images/")
        ->required()
        ->type_name("FOLDER");
  verb->add_option("--out", arguments->out, "Folder to make; must not exist")->required()->type_name("FOLDER");
  verb->callback([arguments] { run_dg_cub(*arguments); });
}

}  // namespace

void add_dg(CLI::App& app) {
  CLI::App* dg = add_verb(app, "dg", "Domain generalisation by the protocol of DomainBed",
                          "sparsight dg train --dataset rotated_mnist --algorithm irm --test-envs 0\n"
                          "sparsight dg sweep --dataset colored_mnist --hparams 1 --no-pairs --out runs/sweep\n"
                          "sparsight dg table runs/sweep");
  dg->require_subcommand(1);
  add_hparams(*dg);
  add_dg_train(*dg);
  add_sweep(*dg);
  add_table(*dg);
  add_cub_dg(*dg);
}

}  // namespace sparsight::cli
