// SPDX-License-Identifier: Apache-2.0

// The profiler: fetches profiles of a program and of the API server.

package measure

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/test/bench/internal/program"
)

const (
	// profileSeconds is the duration of CPU profiles, from the program's start.
	profileSeconds = 12
	// profileStart bounds the wait until the program serves profiles.
	profileStart = 10 * time.Second
	// cpuSuffix and heapSuffix end the names of the files.
	cpuSuffix, heapSuffix = "-cpu.pprof", "-heap.pprof"
)

// profiler fetches profiles of a program that has this controller's flags, and of the API
// server at the same time.
type profiler struct {
	session *session
	folder  string
	name    string
	// address is the address at which the program serves its profiles.
	address string
	client  *http.Client
}

// profiler returns a program that serves profiles, and a profiler for it.
func (s *session) profiler(p program.Program, folder string) (program.Program, *profiler, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return p, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return p, nil, err
	}
	address := listener.Addr().String()
	// The certificate is self-signed and new at each start.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	f := &profiler{session: s, folder: folder, name: p.Name, address: address, client: &http.Client{Transport: transport}}
	return p.With(p.Name, "-metrics-bind-address="+address, "-profiling"), f, listener.Close()
}

// cpu starts to fetch CPU profiles of the program, which is about to start, and of the
// API server. The returned function waits for them.
func (f *profiler) cpu(ctx context.Context) (done func() error) {
	var group errgroup.Group
	seconds := strconv.Itoa(profileSeconds)
	group.Go(func() error {
		return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, profileStart+profileSeconds*time.Second, true, func(ctx context.Context) (bool, error) {
			err := f.fetch(ctx, "profile?seconds="+seconds, f.name+cpuSuffix)
			if _, refused := errors.AsType[*net.OpError](err); refused {
				return false, nil // the program does not serve profiles yet
			}
			return true, err
		})
	})
	group.Go(func() error {
		content, err := f.session.Kube.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", seconds).DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("profiling the API server: %w", err)
		}
		return os.WriteFile(filepath.Join(f.folder, "apiserver-beside-"+f.name+cpuSuffix), content, 0o644)
	})
	return group.Wait
}

// heap fetches a heap profile.
func (f *profiler) heap(ctx context.Context) error {
	return f.fetch(ctx, "heap?gc=1", f.name+heapSuffix)
}

func (f *profiler) fetch(ctx context.Context, what, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+f.address+"/debug/pprof/"+what, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+f.session.Contender.BearerToken)
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("profiling %s: %s: %s", f.name, response.Status, content)
	}
	return os.WriteFile(filepath.Join(f.folder, file), content, 0o644)
}
