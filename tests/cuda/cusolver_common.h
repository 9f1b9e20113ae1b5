#pragma once

// The names of cuSOLVER that LibTorch's headers use.
typedef enum { CUSOLVER_STATUS_SUCCESS = 0 } cusolverStatus_t;
