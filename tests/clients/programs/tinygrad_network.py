"""tinygrad_network.py STEPS — train a small network with tinygrad on data from a fixed seed; prints a line `loss X` for each step."""
import sys

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context
from tinygrad.nn.optim import Adam

rng = np.random.default_rng(7)


def weights(*shape):
    return Tensor((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))


class Network:
    def __init__(self):
        self.first, self.first_bias = weights(8, 1, 5, 5), Tensor.zeros(8).contiguous()
        self.norm = nn.BatchNorm(8)
        self.second, self.second_bias = weights(16, 8, 3, 3), Tensor.zeros(16).contiguous()
        self.last, self.last_bias = weights(10, 16 * 3 * 3), Tensor.zeros(10).contiguous()

    def __call__(self, x):
        x = x.conv2d(self.first, self.first_bias).relu().max_pool2d()
        x = self.norm(x).conv2d(self.second, self.second_bias).relu().max_pool2d()
        return x.flatten(1).linear(self.last.T, self.last_bias)


# Ten patterns with noise; the label is the number of the pattern.
patterns = rng.standard_normal((10, 1, 20, 20))
labels = rng.integers(0, 10, 256)
images = Tensor((patterns[labels] + rng.standard_normal((256, 1, 20, 20))).astype(np.float32))
labels = Tensor(labels.astype(np.int32))
network = Network()
optimiser = Adam(nn.state.get_parameters(network), lr=3e-3)


@TinyJit
@Context(TRAINING=1)
def step(chosen):
    optimiser.zero_grad()
    loss = network(images[chosen]).sparse_categorical_crossentropy(labels[chosen]).backward()
    return loss.realize(*optimiser.schedule_step())


for _ in range(int(sys.argv[1])):
    print(f"loss {step(Tensor(rng.integers(0, 256, 32).astype(np.int32))).item():.7g}", flush=True)
