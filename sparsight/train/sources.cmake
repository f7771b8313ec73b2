light_sources(
  train/optim/adam.cpp
  train/optim/optimizer.cpp
  train/optim/register_optimizers.cpp
  train/optim/sgd.cpp
  train/run_config.cpp
  train/schedule.cpp
  train/train_options.cpp)
