#pragma once

// What LibTorch's headers name of cuSOLVER.
typedef struct cusolverDnContext* cusolverDnHandle_t;
