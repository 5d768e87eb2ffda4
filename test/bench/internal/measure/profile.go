// SPDX-License-Identifier: Apache-2.0

// Where a program's CPU goes: a profile of it while Foos wait, divided among the parts of its
// work.

package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/google/pprof/profile"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/testcluster"
)

// profileTime is longer than profiled programs take for all Foos.
const profileTime = 45 * time.Second

// part is a part of the work. It has the samples with a function that matches, unless an earlier
// part has them.
type part struct {
	name  string
	calls *regexp.Regexp
}

// parts are the parts of the work, in the order in which they get their samples. The last has
// the rest.
var parts = []part{
	{"garbage collector", regexp.MustCompile(`^runtime\.(gcBgMarkWorker|gcAssistAlloc|bgsweep|bgscavenge|gcStart|sweepone)`)},
	{"calls: encoding, sending and decoding", regexp.MustCompile(`gentype\.\(\*(Client|alsoApplier|alsoLister)|client-go/rest\.\(\*Request\)`)},
	{"connections, and decoding watches", regexp.MustCompile(`watch\.\(\*StreamWatcher\)\.receive|(net/http|http2)\.\(\*(persistConn|Transport|ClientConn|clientConn|clientStream)\)`)},
	{"Events: queueing and correlating", regexp.MustCompile(`pkg/process/events\.|tools/record\.`)},
	{"caches: keeping, indexing, telling", regexp.MustCompile(`client-go/tools/cache\.`)},
	{"decisions and statuses", regexp.MustCompile(`pkg/reconcile/plan\.`)},
	{"queue, memory and metrics", regexp.MustCompile(`reconcile/(queue|memory)\.|process/metrics\.`)},
	{"the rest of the loop", regexp.MustCompile(`^main\.`)},
	{"scheduler and the rest", regexp.MustCompile(``)},
}

// ProfileParts are the names of the parts of the work, in the order of the report.
func ProfileParts() (names []string) {
	for _, part := range parts {
		names = append(names, part.name)
	}
	return names
}

// Profile returns where a program's CPU goes while Foos wait, in microseconds per Foo.
func (b *Bench) Profile(ctx context.Context, p Program, foos int) (perFoo map[string]float64, err error) {
	err = b.in(ctx, false, func(s *session) error {
		waiting, err := s.waitingFoos(ctx, foos)
		if err != nil {
			return err
		}
		address, err := freeAddress(ctx)
		if err != nil {
			return err
		}
		scheme, serves := "http", []string{"-profiles=" + address}
		if p.Name == "ours" {
			scheme, serves = "https", []string{"-profiling", "-metrics-bind-address=" + address}
		}
		var taken *profile.Profile
		done := make(chan error, 1)
		go func() {
			var err error
			taken, err = s.takeProfile(ctx, scheme+"://"+address)
			done <- err
		}()
		running, _, _, err := s.converge(ctx, p.With(p.Name, serves...), convergeTimeout, waiting...)
		if err != nil {
			return err
		}
		if err := errors.Join(running.Err(), <-done); err != nil {
			return err
		}
		used, err := running.usage()
		perFoo = divide(taken, used.cpu*1000/float64(foos))
		return err
	})
	return perFoo, err
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// takeProfile takes a profile of CPU from the program that soon serves at a URL.
func (s *session) takeProfile(ctx context.Context, at string) (taken *profile.Profile, err error) {
	config, err := testcluster.LoadConfig(s.kubeconfig())
	if err != nil {
		return nil, err
	}
	config.Host, config.TLSClientConfig = at, rest.TLSClientConfig{Insecure: true} // it signs its own certificate
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	err = testcluster.Await(ctx, time.Minute+profileTime, "the program serves a profile", func(context.Context) error {
		body, err := client.RESTClient().Get().AbsPath("/debug/pprof/profile").
			Param("seconds", fmt.Sprint(profileTime.Seconds())).DoRaw(ctx)
		if err == nil {
			taken, err = profile.ParseData(body)
		}
		return err
	})
	return taken, err
}

// divide divides the CPU used among the parts of the work.
func divide(taken *profile.Profile, used float64) map[string]float64 {
	found, all := map[string]float64{}, 0.0
	for _, sample := range taken.Sample {
		spent := float64(sample.Value[len(sample.Value)-1])
		owner := slices.IndexFunc(parts, func(candidate part) bool { return isIn(sample, candidate.calls) })
		if owner < 0 { // without a stack
			owner = len(parts) - 1
		}
		found[parts[owner].name] += spent
		all += spent
	}
	for name := range found {
		found[name] *= used / all
	}
	return found
}

// isIn reports whether a sample has a function that matches.
func isIn(sample *profile.Sample, calls *regexp.Regexp) bool {
	return slices.ContainsFunc(sample.Location, func(location *profile.Location) bool {
		return slices.ContainsFunc(location.Line, func(line profile.Line) bool { return calls.MatchString(line.Function.Name) })
	})
}
