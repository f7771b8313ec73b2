<<<<<<< HEAD
light_tests(dg/protocol_random_test.cpp)
=======
torch_tests(dg/twice_differentiable_test.cpp)
>>>>>>> 968f455 (Let losses contain gradients: layers run on torch's operations while a scope lives)
