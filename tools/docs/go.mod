module example.com/sample-controller/tools/docs

go 1.26.0

toolchain go1.26.11

require github.com/yuin/goldmark v1.8.7
