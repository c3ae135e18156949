// Quantiles of the normal distribution, for the forms of the key space. The processes of a cluster must agree on every
// key, whatever CPU and C library they run on. So these functions use only operations that IEEE 754 rounds in one way:
// no std::log, no std::exp, no fused multiply-add (the project is compiled with -ffp-contract=off).
#pragma once

namespace gannet::ycsb {

// The z of which a standard normal variable is below with probability `p`, in [1e-10, 1 - 1e-10]. The error is below
// 1e-14 of the value, so results ascend strictly for values of p that are 1e-12 apart.
double NormalQuantile(double p);

// e to the power of `x`, for |x| < 700, with a relative error below 1e-13.
double PortableExp(double x);

}  // namespace gannet::ycsb
