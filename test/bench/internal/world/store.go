/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/wait"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/test/bench/internal/devcluster"
)

const (
	// perTransaction is of how many numbers the objects are written at once. Two
	// for each make 100 operations; etcd takes 128. They have one resourceVersion in
	// common, which costs a client nothing: it compares those of one object only.
	perTransaction = 50

	servedInterval = 20 * time.Millisecond
	servedTimeout  = time.Minute
)

// store is where the API server keeps what it serves.
type store struct {
	etcd              *clientv3.Client
	foos, deployments shelf
}

// shelf is where it keeps the objects of one kind, under keys that go on with
// namespace and name.
type shelf struct {
	etcd   *clientv3.Client
	prefix string
	format runtime.Serializer
}

func openStore(cluster *devcluster.Cluster) (*store, error) {
	etcd, err := cluster.Etcd()
	if err != nil {
		return nil, err
	}
	return &store{
		etcd: etcd,
		foos: shelf{etcd, "/registry/samplecontroller.k8s.io/foos",
			json.NewSerializerWithOptions(json.DefaultMetaFactory, fooscheme.Scheme, fooscheme.Scheme, json.SerializerOptions{})},
		deployments: shelf{etcd, "/registry/deployments", protobuf.NewSerializer(kubescheme.Scheme, kubescheme.Scheme)},
	}, nil
}

func (s *store) close() { _ = s.etcd.Close() }

// read reads an object as it is stored: without a resourceVersion.
func (s *shelf) read(ctx context.Context, namespace, name string, into runtime.Object) error {
	key := path.Join(s.prefix, namespace, name)
	found, err := s.etcd.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading %s from etcd: %w", key, err)
	}
	if len(found.Kvs) != 1 {
		return fmt.Errorf("etcd has no %s", key)
	}
	if _, _, err := s.format.Decode(found.Kvs[0].Value, nil, into); err != nil {
		return fmt.Errorf("decoding %s from etcd: %w", key, err)
	}
	return nil
}

// put returns the operation that stores an object.
func (s *shelf) put(object interface {
	metav1.Object
	runtime.Object
}) (clientv3.Op, error) {
	key := path.Join(s.prefix, object.GetNamespace(), object.GetName())
	var value bytes.Buffer
	if err := s.format.Encode(object, &value); err != nil {
		return clientv3.Op{}, fmt.Errorf("encoding %s for etcd: %w", key, err)
	}
	return clientv3.OpPut(key, value.String()), nil
}

// write stores what puts returns for the numbers from first to first+n-1. The
// last number's are written after all others, and apart from them: the API
// server learns of them last.
func (s *store) write(ctx context.Context, first, n int, puts func(number int) ([]clientv3.Op, error)) error {
	if n == 0 {
		return nil
	}
	last := first + n - 1
	transactions := (n - 1 + perTransaction - 1) / perTransaction
	err := each(ctx, transactions, func(ctx context.Context, i int) error {
		from := first + i*perTransaction
		return s.commit(ctx, from, min(from+perTransaction, last), puts)
	})
	if err != nil {
		return err
	}
	return s.commit(ctx, last, last+1, puts)
}

// commit stores what is returned for the numbers from first up to end, all or
// nothing. What exists already it does not touch.
func (s *store) commit(ctx context.Context, first, end int, puts func(number int) ([]clientv3.Op, error)) error {
	var all []clientv3.Op
	var absent []clientv3.Cmp
	for number := first; number < end; number++ {
		some, err := puts(number)
		if err != nil {
			return err
		}
		for _, put := range some {
			absent = append(absent, clientv3.Compare(clientv3.CreateRevision(string(put.KeyBytes())), "=", 0))
		}
		all = append(all, some...)
	}
	done, err := s.etcd.Txn(ctx).If(absent...).Then(all...).Commit()
	if err == nil && !done.Succeeded {
		err = errors.New("one of them exists already")
	}
	if err != nil {
		return fmt.Errorf("writing %s to %s to etcd: %w", all[0].KeyBytes(), all[len(all)-1].KeyBytes(), err)
	}
	return nil
}

// awaitFoo waits until the API server's cache has a Foo.
func awaitFoo(ctx context.Context, cluster *devcluster.Cluster, namespace, name string) error {
	return await(ctx, "Foo", namespace, name, func(ctx context.Context, options metav1.GetOptions) error {
		_, err := cluster.Foos.SamplecontrollerV1alpha1().Foos(namespace).Get(ctx, name, options)
		return err
	})
}

// awaitDeployment waits until the API server's cache has a Deployment.
func awaitDeployment(ctx context.Context, cluster *devcluster.Cluster, namespace, name string) error {
	return await(ctx, "Deployment", namespace, name, func(ctx context.Context, options metav1.GetOptions) error {
		_, err := cluster.Kube.AppsV1().Deployments(namespace).Get(ctx, name, options)
		return err
	})
}

func await(ctx context.Context, kind, namespace, name string, get func(context.Context, metav1.GetOptions) error) error {
	err := wait.PollUntilContextTimeout(ctx, servedInterval, servedTimeout, true, func(ctx context.Context) (bool, error) {
		err := get(ctx, metav1.GetOptions{ResourceVersion: "0"}) // from the cache, as it is
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server serves %s %s/%s: %w", kind, namespace, name, err)
	}
	return nil
}
