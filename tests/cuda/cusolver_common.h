#pragma once

// What LibTorch's headers name of cuSOLVER.
typedef enum { CUSOLVER_STATUS_SUCCESS = 0 } cusolverStatus_t;
