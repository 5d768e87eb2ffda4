// SPDX-License-Identifier: Apache-2.0

// The names of actors.

package main

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/internal/audit"
)

// The actors in the steps. Others appear under their name in the API server.
const (
	you                  = "you"
	sampleController     = "sample-controller"
	deploymentController = "deployment-controller"
	replicaSetController = "replicaset-controller"
	scheduler            = "kube-scheduler"
	kubelet              = audit.KwokKubelet
	collector            = "garbage-collector"
)

// actorOf returns who sent a write; self is the name of the user at the terminal.
func actorOf(w audit.Write, self string) string {
	switch {
	case w.User == self && strings.HasPrefix(w.Manager, "kubectl"):
		return you
	case w.User == self:
		return you + " (" + w.Manager + ")"
	}
	return audit.ActorOf(w).Name
}

// isYou reports whether an actor is the user at the terminal.
func isYou(who string) bool { return who == you || strings.HasPrefix(who, you+" (") }

// whoAmI returns the cluster's name for the user at the terminal.
func whoAmI(ctx context.Context, client kubernetes.Interface) (string, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking the cluster who we are: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
