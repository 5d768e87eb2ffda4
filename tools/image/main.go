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
	dir      string
	release  string
	push     bool
	force    bool
	claims   bool
	programs []string
}

func main() {
	var opts options
	flag.StringVar(&opts.image, "image", "", "Name of the image, such as registry.example.com/team/sample-controller:v1.2.3.")
	flag.StringVar(&opts.dir, "folder", "", "Directory to write to.")
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
	if opts.image == "" || opts.dir == "" || len(opts.programs) == 0 {
		return errors.New("-image, -folder and at least one program are required")
	}
	tag, err := name.NewTag(opts.image)
	if err != nil {
		return fmt.Errorf("-image=%s: %w", opts.image, err)
	}
	images, err := imagesOf(opts.programs)
	if err != nil {
		return err
	}
	whole := combine(images)
	archive, err := write(opts.dir, tag, images, whole)
	if err != nil {
		return err
	}
	if opts.push {
		if err := push(ctx, tag, images, whole, opts.release, opts.force); err != nil {
			return fmt.Errorf("pushing %s: %w", tag.Name(), err)
		}
	}
	return printResult(archive, tag, images, whole)
}

// imagesOf makes an image of each program.
func imagesOf(paths []string) ([]*platformImage, error) {
	var images []*platformImage
	for _, path := range paths {
		program, err := readProgram(path)
		if err != nil {
			return nil, err
		}
		image, err := newPlatformImage(program)
		if err != nil {
			return nil, fmt.Errorf("making an image of %s: %w", path, err)
		}
		images = append(images, image)
	}
	return images, nil
}

// printResult prints the image's digest, and the path of the archive.
func printResult(archive string, tag name.Tag, images []*platformImage, whole v1.ImageIndex) error {
	digest, err := whole.Digest()
	if err != nil {
		return err
	}
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	var platforms []v1.Platform
	for _, image := range images {
		platforms = append(platforms, image.program.platform)
	}
	fmt.Printf("%s@%s %v\n%s (%.1f MB)\n", tag, digest, platforms, archive, float64(info.Size())/1e6)
	return nil
}
