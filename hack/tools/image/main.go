// SPDX-License-Identifier: Apache-2.0

// Command image builds a container image from programs that the go command has built, one for
// each platform. It needs no daemon, base image or network.
//
// All metadata of the image comes from the build information in the programs. Therefore
// the same programs always give the same image, bit for bit. hack/image.sh builds the
// programs and calls this command. To verify an image, the script uses this command to find
// out what to build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// options are the command's flags and arguments.
type options struct {
	image    string
	release  string
	push     bool
	force    bool
	claims   bool
	programs []string
}

func main() {
	var opts options
	flag.StringVar(&opts.image, "image", "", "Name of the image, such as registry.example.com/team/sample-controller:v1.2.3.")
	flag.StringVar(&opts.release, "release", "", "Go release, such as go1.26.0. Without -force, programs that were built with an older release are not pushed.")
	flag.BoolVar(&opts.push, "push", false, "Push the image to the registry in its name.")
	flag.BoolVar(&opts.force, "force", false, "Push even if the tree had uncommitted changes or the tag belongs to another image.")
	flag.BoolVar(&opts.claims, "claims", false, "Print the build information in -image, a NAME@DIGEST in a registry: commit, Go release, GOFIPS140, platforms and version.")
	flag.Parse()
	opts.programs = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	if opts.claims {
		line, err := claimsOf(ctx, opts.image)
		if err == nil {
			fmt.Println(line)
		}
		return err
	}
	tag, err := name.NewTag(opts.image)
	if err != nil {
		return fmt.Errorf("-image=%s: %w", opts.image, err)
	}
	if len(opts.programs) == 0 {
		return errors.New("at least one program is required")
	}
	var programs []*program
	var platforms []v1.Platform
	for _, path := range opts.programs {
		p, err := readProgram(path)
		if err != nil {
			return err
		}
		programs, platforms = append(programs, p), append(platforms, p.platform)
	}
	index, err := newIndex(tag, programs)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if opts.push {
		if err := push(ctx, tag, programs[0], index, opts.release, opts.force); err != nil {
			return fmt.Errorf("pushing %s: %w", tag.Name(), err)
		}
	}
	fmt.Printf("%s@%s %v\n", tag, digest, platforms)
	for _, p := range programs {
		fmt.Println(p.archive())
	}
	return nil
}
