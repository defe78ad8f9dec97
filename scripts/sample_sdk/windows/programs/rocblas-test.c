/* A test of the stand-in for rocBLAS. */
int rocblas_saxpy(int, float, const float *, float *);

int main(void) {
    float x[] = {1, 2}, y[] = {10, 20};
    return rocblas_saxpy(2, 3, x, y) || y[0] != 13 || y[1] != 26;
}
